"""How do we come to terms with one server? Transport, protocol era and handshake, and a way to hear of changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

import mcpproxy
from mcpproxy.config.models import Server
from mcpproxy.upstream.connection import Connection
from mcpproxy.wire.channel import Channel
from mcpproxy.wire.credentials import Credentials
from mcpproxy.wire.errors import ChannelClosed, HttpStatus, InvalidAnswer, RpcError, Unauthorized, WireError
from mcpproxy.wire.reaper import Reaper
from mcpproxy.wire.stdio import StdioChannel, child_environment

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcpproxy.wire.http import HttpChannel

log = logging.getLogger(__name__)

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
                on_tools_changed()  # what changed since the list and before this moment was told to nobody
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
