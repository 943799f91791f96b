"""How does the SDK's session talk over a channel of ours? As through one of its own dispatchers.

A `ClientSession` runs on top for handshake, discovery and notifications. The SDK calls `run()` provisional: this is
the one file that knows its shape.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
from mcp.shared.dispatcher import run_notify_intercept
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext

from mcpproxy.wire import envelope
from mcpproxy.wire.channel import Channel
from mcpproxy.wire.envelope import RequestId
from mcpproxy.wire.errors import CallTimeout, ChannelClosed, HttpStatus, RpcError, WireError

if TYPE_CHECKING:
    from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest

log = logging.getLogger(__name__)

_MAX_SERVER_REQUESTS = 128
_CONNECTION_CLOSED = -32000
_REQUEST_TIMEOUT = -32001
_INTERNAL_ERROR = -32603
_INVALID_REQUEST = -32600

# The session has no use for these: the channel reads progress itself, and a server cannot cancel what it asks.
_OWN_NOTICES = frozenset({"notifications/progress", "notifications/cancelled"})


class ChannelDispatcher:
    """The SDK's `Dispatcher` over a channel, and the channel's listener."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._on_request: OnRequest | None = None
        self._on_notify: OnNotify | None = None
        self._intercept: OnNotifyIntercept | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._server_requests = 0

    @property
    def kind(self) -> str:
        """The channel's transport."""
        return self._channel.kind

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send one of the session's own requests; every fault becomes an MCPError with the fault as its cause."""
        opts = opts or {}
        request_id = opts.get("request_id") or self._channel.next_id()
        body = envelope.request(request_id, method, envelope.encode(dict(params or {})))
        try:
            raw = await self._channel.exchange(
                request_id,
                body,
                opts.get("headers") or {},
                timeout=opts.get("timeout"),
                cancellable=opts.get("cancel_on_abandon", True),
            )
            return envelope.as_dict(raw)
        except RpcError as error:
            raise MCPError(error.code, error.message, error.data) from error
        except CallTimeout as error:
            raise MCPError(_REQUEST_TIMEOUT, f"{method}: {error}") from error
        except ChannelClosed as error:
            raise MCPError(_CONNECTION_CLOSED, str(error)) from error
        except HttpStatus as error:
            raise MCPError(_INVALID_REQUEST, str(error)) from error
        except WireError as error:
            raise MCPError(_INTERNAL_ERROR, str(error)) from error

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send one of the session's own notifications."""
        body = envelope.notification(method, envelope.encode(dict(params)) if params is not None else b"")
        await self._channel.send_message(body, (opts or {}).get("headers") or {})

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Let the session take what the server asks and says, until the connection ends."""
        self._on_request, self._on_notify, self._intercept = on_request, on_notify, on_notify_intercept
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._channel.listener = self
            task_status.started()
            try:
                await asyncio.shield(self._channel.closed)
            finally:
                self._channel.listener = None
                tasks.cancel_scope.cancel()

    # What the channel hears.

    def notice(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification, in the order of arrival as far as the session cares for it."""
        if not run_notify_intercept(self._intercept, method, params) and method not in _OWN_NOTICES:
            assert self._tasks is not None
            self._tasks.start_soon(self._tell, method, params)

    async def _tell(self, method: str, params: dict[str, Any]) -> None:
        assert self._on_notify is not None
        try:
            await self._on_notify(_Context(self, None), method, params)
        except Exception as error:  # whatever a notice breaks, it costs that notice only
            log.debug("a server's %.100s notice failed: %s", method, error)

    def request(self, request_id: RequestId, method: str, params: bytes) -> bool:
        """Take a request, unless so many wait already that the server cannot be reading our answers."""
        if self._server_requests >= _MAX_SERVER_REQUESTS:
            log.debug("dropped a server's %.100s request: too many at once", method)
            return False
        assert self._tasks is not None
        self._server_requests += 1
        self._tasks.start_soon(self._answer, request_id, method, params)
        return True

    async def _answer(self, request_id: RequestId, method: str, params: bytes) -> None:
        assert self._on_request is not None
        try:
            result = await self._on_request(_Context(self, request_id), method, envelope.as_dict(params))
            body = envelope.answer(request_id, envelope.encode(result))
        except MCPError as error:
            body = envelope.failure(request_id, error.error.code, error.error.message)
        except Exception as error:  # whatever a server's request breaks, it costs that request only
            log.debug("a server's %.100s request failed: %s", method, error)
            body = envelope.failure(request_id, _INTERNAL_ERROR, "the client could not handle this request")
        try:
            await self._channel.send_message(body, {})
        except (WireError, OSError) as error:
            log.debug("could not send to the upstream: %s", error)
        finally:  # counted until it is sent: a server that asks and never reads must not fill our memory
            self._server_requests -= 1


class _Context:
    """What the SDK hands to the handlers of a server's request."""

    def __init__(self, dispatcher: ChannelDispatcher, request_id: RequestId | None) -> None:
        self._dispatcher = dispatcher
        self.request_id = request_id
        self.transport = TransportContext(kind=dispatcher.kind, can_send_request=True)
        self.can_send_request = True
        self.message_metadata = None

    @property
    def cancel_requested(self) -> anyio.Event:
        """Never set: the requests a server may send us are answered at once."""
        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        return await self._dispatcher.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        await self._dispatcher.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nothing we answer takes long enough to report on."""
