"""How does one question find its answer? Correlation, deadlines, progress and cancellation over any transport.

Proxied calls go through `call_raw` and are never decoded. What the server asks and tells on its own goes to the
channel's listener, which is the SDK's session (see dispatch.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from mcpproxy.deadline import Deadline
from mcpproxy.wire import envelope
from mcpproxy.wire.envelope import Message, RequestId
from mcpproxy.wire.errors import (
    AnswerTooLarge,
    CallTimeout,
    ChannelClosed,
    InvalidAnswer,
    RpcError,
    TooManyCalls,
    WireError,
)
from mcpproxy.wire.events import Event

log = logging.getLogger(__name__)

MAX_PENDING = 2048
"""Calls that may wait for one upstream at once."""
_MAX_LATE = 1024
_MAX_NOTICES_PER_SECOND = 500


class OnProgress(Protocol):
    """Told of each progress notification of one call: its raw params."""

    def __call__(self, params: bytes, /) -> None: ...


class Listener(Protocol):
    """Whoever takes what the server says on its own. Called in the order of arrival; must neither block nor raise."""

    def notice(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification."""

    def request(self, request_id: RequestId, method: str, params: bytes) -> bool:
        """Take a request; False where it is dropped."""


class Pending:
    """One request under way."""

    __slots__ = ("endless", "extend", "future", "on_progress")

    def __init__(self, future: asyncio.Future[bytes], on_progress: OnProgress | None, endless: bool) -> None:
        self.future = future
        self.on_progress = on_progress
        self.endless = endless
        """A subscription: its answer comes when it ends."""
        self.extend: Callable[[], None] | None = None

    def resolve(self, result: bytes) -> None:
        """Hand the raw result to whoever waits; a second answer finds nobody."""
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: WireError) -> None:
        """Fail the request with a fault of its own."""
        if not self.future.done():
            self.future.set_exception(error)


class Channel(ABC):
    """One connection to one upstream."""

    kind: str

    def __init__(self, *, max_result_bytes: int) -> None:
        self.max_result_bytes = max_result_bytes
        """May change while it is connected."""
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[str] = self._loop.create_future()
        """Resolves to the reason once the connection has ended."""
        self.stray_answers = 0
        self._pending: dict[RequestId, Pending] = {}
        self._late: dict[RequestId, None] = {}
        """Given up, but an answer to them is no sign of madness."""
        self._last_id = 0
        self.listener: Listener | None = None
        self._notice_second = 0
        self._notices = 0
        self._flooded = False

    # What a transport provides.

    @abstractmethod
    async def _send_request(
        self, pending: Pending, request_id: RequestId, body: bytes, headers: Mapping[str, str]
    ) -> None:
        """Get a request to the upstream; its answer arrives through `deliver` or `pending.fail`."""

    @abstractmethod
    async def send_message(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Get a notification, or an answer of ours, to the upstream."""

    async def _cancel(self, request_id: RequestId, reason: str) -> None:
        """Tell the upstream that nobody waits for this request any more."""
        params = envelope.encode({"requestId": request_id, "reason": reason})
        await self.send_message(envelope.notification("notifications/cancelled", params), {})

    # Proxied calls.

    def call_raw(
        self,
        method: str,
        params: bytes,
        *,
        timeout: float,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Coroutine[Any, Any, bytes]:
        """Send a raw params object (without `_meta`) and return the raw result.

        `meta` holds the members of `_meta`. Where `on_progress` is given, the upstream is asked for progress, and
        each report extends the deadline by `timeout` again, up to `max_timeout` in all.
        """
        request_id = self.next_id()
        if on_progress is not None:
            token = b'"progressToken":%s' % envelope.encode(request_id)
            meta = token + b"," + meta if meta else token
        body = envelope.request(request_id, method, envelope.with_meta(params, meta))
        return self.exchange(
            request_id, body, headers or {}, timeout=timeout, max_timeout=max_timeout, on_progress=on_progress
        )

    def next_id(self) -> int:
        """An id that no request has had."""
        self._last_id += 1
        return self._last_id

    async def exchange(
        self,
        request_id: RequestId,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout: float | None,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        cancellable: bool = True,
    ) -> bytes:
        """Send a whole request and wait for its raw result, without a deadline where `timeout` is None."""
        if self.closed.done():
            raise ChannelClosed(self.closed.result())
        if request_id in self._pending:
            raise ValueError(f"request id {request_id!r} is already in flight")
        if len(self._pending) >= MAX_PENDING:
            raise TooManyCalls(f"{MAX_PENDING} calls already wait for this server")
        loop = self._loop
        pending = Pending(loop.create_future(), on_progress, timeout is None)
        self._pending[request_id] = pending
        started = loop.time()
        try:
            with Deadline(loop, timeout) as deadline:
                if timeout is not None and max_timeout is not None:
                    latest = started + max(timeout, max_timeout)
                    pending.extend = lambda: deadline.move(min(loop.time() + timeout, latest))
                await self._send_request(pending, request_id, body, headers)
                return await pending.future
        except TimeoutError:
            waited = loop.time() - started
            self._give_up(request_id)
            if cancellable:
                await self._abandon(request_id, "timed out")
            raise CallTimeout(round(waited, 1)) from None
        except asyncio.CancelledError:
            self._give_up(request_id)
            if cancellable:
                await asyncio.shield(self._abandon(request_id, "the caller is gone"))
            raise
        finally:
            self._pending.pop(request_id, None)
            if pending.future.done() and not pending.future.cancelled():
                pending.future.exception()  # seen: a failure raised elsewhere must not be logged as never retrieved

    def _give_up(self, request_id: RequestId) -> None:
        """From now on neither progress nor an answer finds this request; an answer may still come."""
        del self._pending[request_id]
        self._late[request_id] = None
        if len(self._late) > _MAX_LATE:
            del self._late[next(iter(self._late))]

    async def _abandon(self, request_id: RequestId, reason: str) -> None:
        try:
            async with asyncio.timeout(1):
                await self._cancel(request_id, reason)
        except (WireError, OSError) as error:
            log.debug("could not tell the upstream that request %s is cancelled: %s", request_id, error)

    # What arrives.

    def deliver(self, data: bytes | bytearray) -> bool:
        """Take one message, or batch, off the transport; False where nobody had a use for it."""
        try:
            parts = envelope.split(data)
        except InvalidAnswer as error:
            log.debug("dropped a batch that cannot be read: %s", error)
            return False
        return sum(self._deliver_one(part) for part in parts) > 0

    def _deliver_one(self, data: bytes | bytearray) -> bool:
        try:
            return self.route(envelope.decode_one(data))
        except InvalidAnswer as error:
            return self.fail_broken(envelope.salvage_whole(data), error)

    def take_event(self, event: Event) -> bool:
        """Take an event of a stream that carries messages for many; False where nobody had a use for it."""
        if event.cut:
            request_id = envelope.salvage_id(event.data, event.data)
            return self.fail_broken(request_id, AnswerTooLarge(self.max_result_bytes))
        return self.deliver(event.data)

    def fail_broken(self, request_id: RequestId | None, error: WireError) -> bool:
        """Fail the request that a broken message belongs to; False where that cannot be told."""
        pending = self._find(request_id)
        if pending is None:
            log.debug("dropped a message that cannot be read: %s", error)
            return False
        pending.fail(error)
        return True

    def _find(self, request_id: RequestId | None) -> Pending | None:
        if request_id is None:
            return None
        return self._pending.get(request_id) or self._pending.get(_our_id(request_id))

    def route(self, message: Message) -> bool:
        """Hand a message to whoever it is for; False where nobody had a use for it."""
        if message.method is not None:
            if message.id is not None:
                return self.listener is not None and self.listener.request(message.id, message.method, message.params)
            return self._take_notice(message.method, message.params)
        pending = self._find(message.id)
        if pending is None:
            self.stray_answers += 1
            log.debug("dropped an answer to request %.100r, which nobody waits for", message.id)
            return message.id is not None and self._late.pop(_our_id(message.id), 0) is None
        # Some servers send both members and mean the one that is not null.
        if message.error and message.error != b"null":
            body = envelope.error_body(message.error)
            pending.fail(RpcError(body.code, body.message, body.data))
        elif message.result:
            pending.resolve(message.result)
        else:
            pending.fail(InvalidAnswer("the answer has neither a result nor an error"))
        return True

    def _take_notice(self, method: str, params: bytes) -> bool:
        if self._flooding():
            return False
        try:
            decoded = envelope.as_dict(params)
        except InvalidAnswer:
            return False
        if method == "notifications/progress":
            self._take_progress(decoded, params)
        if self.listener is not None:
            self.listener.notice(method, decoded)
        return not self._flooded

    def _flooding(self) -> bool:
        """Drop notifications past a rate that no honest server needs."""
        second = int(time.monotonic())
        if second != self._notice_second:
            # The few of a flood that are heard each second must not make it look like something of use.
            self._flooded = self._notices >= _MAX_NOTICES_PER_SECOND and second == self._notice_second + 1
            self._notice_second, self._notices = second, 0
        self._notices += 1
        if self._notices == _MAX_NOTICES_PER_SECOND:
            log.warning("more than %d notifications in a second; dropping the rest", _MAX_NOTICES_PER_SECOND)
        return self._notices >= _MAX_NOTICES_PER_SECOND

    def _take_progress(self, report: dict[str, Any], params: bytes) -> None:
        token = report.get("progressToken")
        pending = self._find(token) if isinstance(token, int | str) and not isinstance(token, bool) else None
        if pending is None or pending.future.done():
            return
        if pending.extend is not None:
            with contextlib.suppress(RuntimeError):  # too late: the deadline has just passed
                pending.extend()
        if pending.on_progress is not None:
            try:
                pending.on_progress(params)
            except Exception:  # a listener's fault must not stop the reader, on which every call depends
                log.exception("a progress report could not be passed on")

    def fail_all(self, reason: str) -> None:
        """End the channel: everybody who still waits learns why."""
        if not self.closed.done():
            self.closed.set_result(reason)
        for pending in tuple(self._pending.values()):
            pending.fail(ChannelClosed(reason))

    @property
    def in_flight(self) -> int:
        """How many requests wait for an answer, other than subscriptions, which always do."""
        return sum(not pending.endless for pending in self._pending.values())

    @abstractmethod
    async def close(self) -> None:
        """End the connection and free everything it holds."""


def _our_id(request_id: RequestId) -> RequestId:
    # Some servers answer 7 as "7". Longer digits are none of ours, and turning them into a number has its own limit.
    if isinstance(request_id, str) and len(request_id) <= 18 and request_id.isdecimal():
        return int(request_id)
    return request_id
