"""How does the official SDK serve us? It owns the protocol; what it serves is ours, byte for byte.

The SDK dumps results through its models, which changes numbers and drops keys. So a handler hands it a one-time
placeholder, and whoever writes the answer out (`agent.http`, `agent.stdio`) puts the raw result in its place.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import mcpproxy
from mcpproxy.agent.descriptions import INSTRUCTIONS
from mcpproxy.calls.reports import Reports
from mcpproxy.wire import envelope

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from mcpproxy.agent.peek import Carried
    from mcpproxy.calls.model import Caller

log = logging.getLogger(__name__)

MARK = b"mcpproxy-result-"
_MAX_WAITING = 10_000
_RESOURCE_NOT_FOUND = types.INVALID_PARAMS
REQUEST_CANCELLED = -32800


class UnknownTool(Exception):
    """No built-in tool has that name."""


class Incoming(Protocol):
    """What a transport knows about the request that the SDK hands to a handler."""

    caller: Caller
    request_id: str
    arguments: bytes
    """The raw `arguments` of a tools/call."""
    gone: asyncio.Event | None
    """Set when the client left before the answer; None where the transport itself ends with it."""
    carried: Carried | None


class Dispatch(Protocol):
    """Runs a built-in tool and returns its raw result."""

    def __call__(
        self,
        name: str,
        arguments: bytes,
        caller: Caller,
        request_id: str,
        on_progress: Callable[[bytes], None] | None,
        *,
        carried: Carried | None = None,
    ) -> Awaitable[bytes]: ...


class Placeholders:
    """Raw results on their way past the SDK."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, bytes] = {}

    def hide(self, result: bytes) -> types.CallToolResult:
        """Keep a raw result and return what the SDK may dump in its stead."""
        mark = MARK + secrets.token_hex(16).encode()
        while len(self._waiting) >= _MAX_WAITING:  # answers whose client left before they were written
            self._waiting.pop(next(iter(self._waiting)))
        self._waiting[mark] = result
        return types.CallToolResult(content=[types.TextContent(type="text", text=mark.decode())])

    def restore(self, message: bytes) -> bytes:
        """One JSON-RPC message of the SDK, with the raw result where a placeholder stood."""
        at = message.find(MARK)
        if at < 0:
            return message
        result = self._waiting.pop(message[at : at + len(MARK) + 32], None)
        if result is None:
            return message
        # Not by msgspec: a client may have chosen an id that only the SDK can read, such as half an emoji.
        request_id = json.dumps(json.loads(message)["id"]).encode()
        return envelope.answer_to(request_id, result)


class AgentServer(Server[dict[str, Any]]):
    """The SDK's server with our handlers."""

    def __init__(
        self,
        *,
        list_tools: Callable[[Caller], list[dict[str, Any]]],
        dispatch: Dispatch,
        placeholders: Placeholders,
        incoming: Callable[[ServerRequestContext[Any, Any]], Incoming],
    ) -> None:
        self._list_tools = list_tools
        self._dispatch = dispatch
        self._placeholders = placeholders
        self._incoming = incoming
        self._bus = InMemorySubscriptionBus()
        self._listeners = ListenHandler(self._bus)
        self._sessions: dict[str | None, ServerSession] = {}
        lists = CacheHint(ttl_ms=0, scope="private")
        super().__init__(
            "mcpproxy",
            version=mcpproxy.__version__,
            title="mcpproxy",
            instructions=INSTRUCTIONS,
            cache_hints={"tools/list": lists, "resources/list": lists, "prompts/list": lists},
            get_tool_input_schema=_no_param_headers,
            on_list_tools=self._on_list_tools,
            on_call_tool=self._on_call_tool,
            on_list_resources=_no_resources,
            on_list_resource_templates=_no_templates,
            on_read_resource=_no_resource,
            on_list_prompts=_no_prompts,
            on_subscriptions_listen=self._listeners,
        )
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
        self.add_notification_handler("notifications/initialized", types.NotificationParams, self._on_initialized)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Announce that the tool list may change, which the SDK does not do by itself."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True), experimental_capabilities, extensions
        )

    async def _on_initialized(self, ctx: ServerRequestContext[Any, Any], params: types.NotificationParams) -> None:
        self._sessions[self._incoming(ctx).caller.session_id] = ctx.session

    def forget(self, session_id: str) -> None:
        """The session is closed: nobody is left there to be told of anything."""
        self._sessions.pop(session_id, None)

    async def tools_changed(self) -> None:
        """Tell every client, in both eras, to list the tools again."""
        await self._bus.publish(ToolsListChanged())
        await asyncio.gather(*(self._tell(session) for session in tuple(self._sessions.values())))

    async def _tell(self, session: ServerSession) -> None:
        try:
            async with asyncio.timeout(5):
                await session.send_tool_list_changed()
        except Exception as error:  # a client that went away costs nobody else the news
            log.debug("a client could not be told of new tools: %s", error)

    def close(self) -> None:
        """End the streams that clients listen on."""
        self._listeners.close()

    async def _on_list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "Unknown cursor: the list has one page")
        tools = self._list_tools(self._incoming(ctx).caller)
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])

    async def _on_call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        incoming = self._incoming(ctx)
        asks = ctx.meta is not None and ctx.meta.get("progress_token") is not None
        reports = _Reporter(ctx.session) if asks else None
        call = self._dispatch(
            params.name,
            incoming.arguments,
            incoming.caller,
            incoming.request_id,
            reports.put if reports is not None else None,
            carried=incoming.carried,
        )
        try:
            result = await (call if incoming.gone is None else _unless_gone(call, incoming.gone))
        except UnknownTool as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        finally:
            if reports is not None:
                await reports.close()
        return self._placeholders.hide(result)


async def _unless_gone(call: Awaitable[bytes], gone: asyncio.Event) -> bytes:
    """Make the call, and end it when the client leaves: the SDK of the handshake era would let it run on."""
    calling = asyncio.ensure_future(call)
    leaving = asyncio.ensure_future(gone.wait())
    both: set[asyncio.Future[Any]] = {calling, leaving}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if calling.done():
            return calling.result()
        raise MCPError(REQUEST_CANCELLED, "Request cancelled")
    finally:
        for task in both:
            task.cancel()
        await asyncio.wait(both)


class _Reporter:
    """Progress on its way to a client, in order, the newest where the client is slow."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._reports = Reports()
        self._task = asyncio.create_task(self._run())

    def put(self, params: bytes) -> None:
        """Take one report of the upstream."""
        self._reports.put(params)

    async def _run(self) -> None:
        while (params := await self._reports.get()) is not None:
            report = envelope.as_dict(params)
            try:
                await self._session.report_progress(report["progress"], report.get("total"), report.get("message"))
            except Exception as error:  # an upstream's odd report costs that report only
                log.debug("a progress report could not be passed on: %s", error)

    async def close(self) -> None:
        """Let what is queued go out, but wait for no one who does not read."""
        self._reports.end()
        _, pending = await asyncio.wait({self._task}, timeout=1)
        for task in pending:
            task.cancel()


def is_modern(protocol_version: str) -> bool:
    """Whether a protocol revision is of the era without handshake."""
    return protocol_version in MODERN_PROTOCOL_VERSIONS


def _no_param_headers(name: str) -> Mapping[str, Any] | None:
    # None of the built-in tools mirrors an argument into a header; without this the SDK lists on every call.
    return None


async def _no_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[])


async def _no_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


async def _no_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    raise MCPError(_RESOURCE_NOT_FOUND, "Resource not found", {"uri": str(params.uri)})


async def _no_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[])


async def _set_level(ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()
