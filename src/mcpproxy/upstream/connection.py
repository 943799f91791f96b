"""What do we ask of a server that we have come to terms with? Its tools, its calls, and whether it is still there."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

import mcpproxy
from mcpproxy.catalog.listing import MAX_TOOLS, Page, read_page
from mcpproxy.catalog.tool import Tool
from mcpproxy.wire.channel import Channel, OnProgress
from mcpproxy.wire.envelope import encode
from mcpproxy.wire.errors import InvalidAnswer, RpcError

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcpproxy.wire.http import HttpChannel

_MAX_PAGES = 1000
_MAX_LISTING_BYTES = 64 * 1024 * 1024


class Connection:
    """One server, spoken to."""

    def __init__(self, channel: Channel, session: ClientSession) -> None:
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        self.channel = channel
        self.session = session
        self.protocol_version = session.protocol_version or ""
        self.modern = self.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._meta = _modern_meta(self.protocol_version) if self.modern else b""
        self._headers = {"MCP-Protocol-Version": self.protocol_version} if channel.kind == "http" else {}
        if channel.kind == "http":
            channel = cast("HttpChannel", channel)
            channel.modern = self.modern
            channel.common_headers = self._headers

    @property
    def instructions(self) -> str:
        """What the server tells an agent about itself."""
        return self.session.instructions or ""

    @property
    def server_version(self) -> str:
        """The name and version that the server gives itself."""
        info = self.session.server_info
        return f"{info.name} {info.version}".strip() if info is not None else ""

    @property
    def announces_changes(self) -> bool:
        """Whether the server says when its tools change."""
        capabilities = self.session.server_capabilities
        return bool(capabilities and capabilities.tools and capabilities.tools.list_changed)

    def _headers_for(self, method: str, name: str | None) -> Mapping[str, str]:
        if not self.modern or self.channel.kind != "http":
            return self._headers
        from mcp.shared.inbound import encode_header_value

        headers = {**self._headers, "Mcp-Method": method}
        if name is not None:
            headers["Mcp-Name"] = encode_header_value(name)
        return headers

    def call_tool(
        self,
        tool: Tool,
        arguments: bytes,
        *,
        timeout: float,
        max_timeout: float,
        on_progress: OnProgress | None = None,
        trace: Mapping[str, str] | None = None,
    ) -> Coroutine[Any, Any, bytes]:
        """Call a tool with raw arguments; the raw result comes back as the server wrote it."""
        headers = self._headers_for("tools/call", tool.name)
        if self.modern and b"x-mcp-header" in tool.input_schema and self.channel.kind == "http":
            headers = {**headers, **_param_headers(tool, arguments)}
        meta = self._meta
        if trace:
            members = encode(trace)[1:-1]
            meta = meta + b"," + members if meta else members
            if self.channel.kind != "stdio":
                headers = {**headers, **trace}
        return self.channel.call_raw(
            "tools/call",
            b"".join((b'{"name":', encode(tool.name), b',"arguments":', arguments, b"}")),
            timeout=timeout,
            max_timeout=max_timeout,
            on_progress=on_progress,
            meta=meta,
            headers=headers,
        )

    async def list_tools(self, timeout: float) -> list[bytes]:
        """Every tool definition, raw, over all pages."""
        capabilities = self.session.server_capabilities
        if capabilities is not None and capabilities.tools is None:
            return []
        definitions: list[bytes] = []
        cursor: str | None = None
        seen: set[str] = set()
        size = 0
        for _ in range(_MAX_PAGES):
            page = await self._list_page(cursor, timeout)
            definitions.extend(page.definitions)
            size += sum(map(len, page.definitions))
            if len(definitions) > MAX_TOOLS or size > _MAX_LISTING_BYTES:
                raise InvalidAnswer(f"it lists more than {MAX_TOOLS} tools or {_MAX_LISTING_BYTES} bytes of them")
            cursor = page.next_cursor
            if not cursor:
                return definitions
            if cursor in seen:
                raise InvalidAnswer("its tool list never ends: the same page comes again")
            seen.add(cursor)
        raise InvalidAnswer(f"its tool list has more than {_MAX_PAGES} pages")

    async def _list_page(self, cursor: str | None, timeout: float) -> Page:
        params = encode({"cursor": cursor}) if cursor is not None else b"{}"
        raw = await self.channel.call_raw(
            "tools/list", params, timeout=timeout, meta=self._meta, headers=self._headers_for("tools/list", None)
        )
        return read_page(raw)

    async def ping(self, timeout: float) -> None:
        """Raise unless the server answers. Any answer will do: a server need not know the method to be alive."""
        method = "server/discover" if self.modern else "ping"
        with contextlib.suppress(RpcError):
            await self.channel.call_raw(
                method, b"{}", timeout=timeout, meta=self._meta, headers=self._headers_for(method, None)
            )


def _param_headers(tool: Tool, arguments: bytes) -> dict[str, str]:
    """The `Mcp-Param-*` headers that 2026-07-28 asks for where a schema mirrors arguments into headers."""
    from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

    try:
        schema, values = msgspec.json.decode(tool.input_schema), msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    if find_invalid_x_mcp_header(schema) is not None or not isinstance(values, dict):
        return {}
    return mcp_param_headers(x_mcp_header_map(schema), values)


def _modern_meta(version: str) -> bytes:
    members: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "mcpproxy", "version": mcpproxy.__version__},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return encode(members)[1:-1]
