"""How do we come to terms with one server? Transport, protocol era and handshake; then lists and calls on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct

import mcpproxy
from mcpproxy.catalog.listing import MAX_TOOLS, Page, read_page
from mcpproxy.catalog.tool import Tool
from mcpproxy.config.models import Server
from mcpproxy.wire.channel import Channel, OnProgress
from mcpproxy.wire.credentials import Credentials
from mcpproxy.wire.envelope import encode
from mcpproxy.wire.errors import ChannelClosed, HttpStatus, InvalidAnswer, RpcError, Unauthorized, WireError
from mcpproxy.wire.reaper import Reaper
from mcpproxy.wire.stdio import StdioChannel, child_environment

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcpproxy.wire.http import HttpChannel

log = logging.getLogger(__name__)

_MAX_PAGES = 1000
_MAX_LISTING_BYTES = 64 * 1024 * 1024
_METHOD_NOT_FOUND = -32601


class Incompatible(WireError):
    """The server speaks no protocol revision that we speak."""


class Era(Struct):
    """What was learnt about a server, so that a reconnect need not find it out again."""

    protocol: str | None = None
    legacy: bool = False


class Link(Struct, frozen=True, kw_only=True):
    """All that it takes to reach one server."""

    server: Server
    """With its secrets expanded."""
    max_result_bytes: int
    connect_timeout: float
    on_spawn: Callable[[], None]
    on_stderr: Callable[[bytes], None]
    reaper: Reaper
    credentials: Credentials | None
    on_tools_changed: Callable[[], None]
    on_message: Callable[[str], None]


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
    ) -> Coroutine[Any, Any, bytes]:
        """Call a tool with raw arguments; the raw result comes back as the server wrote it."""
        headers = self._headers_for("tools/call", tool.name)
        if self.modern and b"x-mcp-header" in tool.input_schema and self.channel.kind == "http":
            headers = {**headers, **_param_headers(tool, arguments)}
        return self.channel.call_raw(
            "tools/call",
            b"".join((b'{"name":', encode(tool.name), b',"arguments":', arguments, b"}")),
            timeout=timeout,
            max_timeout=max_timeout,
            on_progress=on_progress,
            meta=self._meta,
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


@contextlib.asynccontextmanager
async def connect(link: Link, era: Era) -> AsyncIterator[Connection]:
    """Reach the server, agree on a protocol and keep its notifications flowing for as long as the block lasts."""
    async with contextlib.AsyncExitStack() as stack:
        async with asyncio.timeout(link.connect_timeout):
            connection = await _establish(link, era, stack)
        listener = asyncio.create_task(_listen(connection, link.on_tools_changed))
        try:
            yield connection
        finally:
            listener.cancel()
            await asyncio.wait({listener})
            if not listener.cancelled() and (fault := listener.exception()) is not None:
                log.warning("server %r was no longer listened to: %s", link.server.name, fault)


async def _establish(link: Link, era: Era, stack: contextlib.AsyncExitStack) -> Connection:
    protocol = link.server.protocol or era.protocol
    if link.server.command is not None:
        return await _establish_stdio(link, era, stack)
    if protocol == "sse":
        return await _open(link, era, stack, lambda: _open_sse(link))
    try:
        async with contextlib.AsyncExitStack() as attempt:
            connection = await _open(link, era, attempt, lambda: _open_http(link))
            stack.push_async_exit(attempt.pop_all())
    except (HttpStatus, InvalidAnswer) as error:
        if protocol == "http" or isinstance(error, Unauthorized) or not _looks_like_sse(error):
            raise
        connection = await _open(link, era, stack, lambda: _open_sse(link))
    era.protocol = connection.channel.kind
    return connection


async def _establish_stdio(link: Link, era: Era, stack: contextlib.AsyncExitStack) -> Connection:
    asked_the_new_way = not era.legacy
    try:
        async with contextlib.AsyncExitStack() as attempt:
            connection = await _open(link, era, attempt, lambda: _spawn(link))
            stack.push_async_exit(attempt.pop_all())
    except ChannelClosed:
        if not (asked_the_new_way and era.legacy):
            raise
        # It died of a question that it did not know, as some do: start it again and ask the old way.
        connection = await _open(link, era, stack, lambda: _spawn(link))
    return connection


def _looks_like_sse(error: WireError) -> bool:
    # The specification's own test for a server of 2024: it refuses the POST.
    return not isinstance(error, HttpStatus) or error.status in (400, 404, 405, 406, 415)


async def _spawn(link: Link) -> Channel:
    server = link.server
    assert server.command is not None
    link.on_spawn()
    return await StdioChannel.spawn(
        server.command,
        server.args,
        env=child_environment(server.env),
        cwd=server.working_dir,
        max_result_bytes=link.max_result_bytes,
        on_stderr=link.on_stderr,
        reaper=link.reaper,
    )


async def _open_http(link: Link) -> Channel:
    from mcpproxy.wire.http import HttpChannel  # with an HTTP client of 10 MB, which stdio servers do not need

    assert link.server.url is not None
    return HttpChannel(
        link.server.url,
        headers=link.server.headers,
        max_result_bytes=link.max_result_bytes,
        credentials=link.credentials,
    )


async def _open_sse(link: Link) -> Channel:
    from mcpproxy.wire.sse import SseChannel

    assert link.server.url is not None
    channel = SseChannel(
        link.server.url,
        headers=link.server.headers,
        max_result_bytes=link.max_result_bytes,
        credentials=link.credentials,
    )
    try:
        await channel.open()
    except BaseException:
        await channel.close()
        raise
    return channel


async def _open(
    link: Link, era: Era, stack: contextlib.AsyncExitStack, opened: Callable[[], Awaitable[Channel]]
) -> Connection:
    from mcp.client.session import ClientSession
    from mcp_types import Implementation

    from mcpproxy.wire.dispatch import ChannelDispatcher  # it imports the SDK, which is slow

    channel = await opened()
    stack.push_async_callback(channel.close)
    session = ClientSession(
        dispatcher=ChannelDispatcher(channel),
        client_info=Implementation(name="mcpproxy", version=mcpproxy.__version__),
        message_handler=_handler(link),
    )
    await stack.enter_async_context(_entered(session))
    # A handshake that fails for an HTTP reason must say so: the SDK only sees its own error class.
    from mcp.shared.exceptions import MCPError

    try:
        await _negotiate(session, channel, era)
    except MCPError as error:
        if isinstance(error.__cause__, WireError):
            raise error.__cause__ from None
        raise RpcError(error.error.code, error.error.message, error.error.data) from None
    return Connection(channel, session)


@contextlib.asynccontextmanager
async def _entered(session: ClientSession) -> AsyncIterator[None]:
    """The session while it runs. Its task group wraps every fault in a group; whoever is outside wants the fault."""
    fault: Exception | None = None
    try:
        async with session:
            try:
                yield
            except Exception as error:
                fault = error
                raise
    except ExceptionGroup as group:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # anyio lets a fault win over a cancellation that comes while the group ends; then a stop would be lost.
            raise asyncio.CancelledError from None
        raise fault or _first(group) from None


def _first(fault: Exception) -> Exception:
    return _first(fault.exceptions[0]) if isinstance(fault, ExceptionGroup) else fault


def _handler(link: Link) -> Any:
    import mcp_types as types

    async def handle(message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            link.on_tools_changed()
        elif isinstance(message, types.LoggingMessageNotification):
            link.on_message(f"{message.params.level}: {str(message.params.data)[:1000]}")

    return handle


async def _negotiate(session: ClientSession, channel: Channel, era: Era) -> None:
    """Ask by the newest way first; whatever is no sign of a modern server means the handshake."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, UnsupportedProtocolVersionErrorData
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
    from pydantic import ValidationError

    if channel.kind != "sse" and not era.legacy:
        try:
            await session.discover()
        except MCPError as error:
            if channel.closed.done() or _hopeless(error.__cause__):
                era.legacy = channel.kind == "stdio"  # it died of the question: next time ask the old way
                raise
            if error.error.code == UNSUPPORTED_PROTOCOL_VERSION:
                try:
                    offered = UnsupportedProtocolVersionErrorData.model_validate(error.error.data).supported
                except ValidationError:
                    offered = list(HANDSHAKE_PROTOCOL_VERSIONS)
                if not set(offered) & set(HANDSHAKE_PROTOCOL_VERSIONS):
                    raise Incompatible(f"it speaks only protocol revisions {', '.join(offered)[:200]}") from None
        except (ValidationError, RuntimeError) as error:
            log.debug("not a modern server: %s", error)
        else:
            return
    try:
        await session.initialize()
    except (ValidationError, RuntimeError) as error:
        raise Incompatible(f"its answer to the handshake cannot be used: {str(error).splitlines()[0]}") from None
    era.legacy = True


def _hopeless(cause: BaseException | None) -> bool:
    """Whether any other question would be refused just the same."""
    return isinstance(cause, Unauthorized) or (isinstance(cause, HttpStatus) and cause.status >= 500)


async def _listen(connection: Connection, on_tools_changed: Callable[[], None]) -> None:
    """Hear of changes: a listening GET in the handshake era over HTTP, a subscription in the modern one."""
    if not connection.modern:
        if connection.channel.kind == "http":
            await cast("HttpChannel", connection.channel).listen()
        return
    if not connection.announces_changes:
        return
    from mcp.client.subscriptions import SubscriptionLost, listen
    from mcp.shared.exceptions import MCPError

    pause = 1.0
    while not connection.channel.closed.done():
        try:
            async with listen(connection.session, tools_list_changed=True) as changes:
                async for _ in changes:
                    pause = 1.0
                    on_tools_changed()
        except MCPError as error:
            if error.error.code == _METHOD_NOT_FOUND:
                return
            log.debug("the subscription to tool changes failed: %s", error)
        except (SubscriptionLost, WireError) as error:
            log.debug("the subscription to tool changes was lost: %s", error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, 60)
        on_tools_changed()  # something may have changed while nobody listened
