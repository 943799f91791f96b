"""How is one HTTP connection read and answered? By uvicorn, within deadlines, and plain requests by a shorter way.

A request to `/mcp` that has come whole, with nothing unusual in its head, is offered to the application without the
layers between: the parser's callbacks, ASGI and its tasks cost more than a call does. What is not plain, or is not
taken, goes to uvicorn as it came.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mcpproxy.asgi import Headers, Work
from mcpproxy.replies import Corked, PlainReply

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

log = logging.getLogger(__name__)

HEADER_SECONDS = 15.0
"""How long a client may take to send a request's headers."""
STALLED_SECONDS = 30.0
"""How long a client may take nothing of what waits for it."""
_BODY_SECONDS = 0.1
"""How long the body of a plain request may come behind its head; a slower one is uvicorn's."""
LONGEST_HEAD = 64 * 1024
"""How much of a head, beyond its first segment, uvicorn's parser may keep."""
_MOST_BYTES = 256 * 1024
_MOST_HEAD_BYTES = 8192
_MOST_HELD_BYTES = 64 * 1024
_PLAIN_HEAD = re.compile(rb"POST /mcp HTTP/1\.1\r\n(?:[A-Za-z0-9-]+: ?[!-~](?:[ -~]*[!-~])?\r\n)+\r\n")
_HEADER = re.compile(rb"([A-Za-z0-9-]+): ?([^\r\n]+)\r\n")
_UNUSUAL = frozenset(
    (b"transfer-encoding", b"expect", b"upgrade", b"connection", b"proxy-connection", b"trailer", b"te")
)
_START = b"POST /mcp HTTP/1.1\r\n"

_FAILED = (
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 21\r\nconnection: close\r\n\r\nInternal Server Error"
)
_HEAD_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

Take = Callable[..., Work | None]


class Front(Protocol):
    """An application that answers by ASGI, and takes some requests without it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

    def take(self, headers: Headers, body: bytes, *, local: bool) -> Work | None:
        """The work on a whole POST to `/mcp`, or None where it has to come by ASGI."""


class _Head(Struct, frozen=True):
    data: bytes
    headers: Headers
    length: int


def _plain_head(data: bytes) -> _Head | None:
    """A head that means the same to everybody who reads it."""
    if len(data) > _MOST_HEAD_BYTES or _PLAIN_HEAD.fullmatch(data) is None:
        return None
    pairs = [(name.lower(), value) for name, value in _HEADER.findall(data)]
    headers = Headers(pairs)
    length = headers.raw(b"content-length")
    if not length.isdigit() or len(length) > 9 or headers.repeated & {b"content-length", b"connection"}:
        return None
    unusual = _UNUSUAL.intersection(headers.names())
    if unusual and (unusual != {b"connection"} or headers.raw(b"connection").lower() != b"keep-alive"):
        return None
    return _Head(data, headers, int(length))


class Connection(HttpToolsProtocol):
    """One connection. uvicorn's protocol knows no deadlines for headers and for readers; this one does."""

    def __init__(self, take: Take, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._take = take
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._headed = False
        """Whether the headers of a request were complete in what came last."""
        self._parsing = False
        """Whether uvicorn's parser is within a request."""
        self._in_head = False
        """Whether it is within its head."""
        self._head_bytes = 0
        """How much of that head has come since its first segment."""
        self._head: _Head | None = None
        """The head of the last plain request; the next one is likely to have the same."""
        self._plain: PlainReply | None = None
        """The answer to a plain request that is under way."""
        self._held = b""
        """What came behind a request, or the beginning of a plain one."""
        self._waiting: asyncio.TimerHandle | None = None
        self._used_at = 0.0
        self._last = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.wire = transport
        self._corked = Corked(transport)
        super().connection_made(self._corked)  # type: ignore[arg-type]
        self._local = self.server is not None and self.server[1] is None
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        if self._parsing:
            self._to_uvicorn(data)
        elif self._plain is not None or not self._is_answered():
            self._held += data
            if len(self._held) > _MOST_HELD_BYTES:  # no sooner: unless we read, nobody says that the client has left
                self.flow.pause_reading()
        else:
            if self._held:
                data, self._held = self._held + data, b""
            if not (data.startswith(_START) and self._took(data)):
                self._to_uvicorn(data)

    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _to_uvicorn(self, data: bytes) -> None:
        self._stop_waiting()
        new = self._deadline is None and self._is_answered()
        in_head, self._headed = self._in_head, False
        super().data_received(data)
        if new and not self._headed:
            self._await_headers()
        self._head_bytes = self._head_bytes + len(data) if in_head and not self._headed else 0
        if self._head_bytes > LONGEST_HEAD and not self.transport.is_closing():
            if self._is_answered():
                self.wire.write(_HEAD_TOO_LONG)
            self.transport.close()

    # Plain requests.

    def _took(self, data: bytes) -> bool:
        """Whether this is a plain request, or the beginning of one, and somebody else's no longer."""
        head = self._head
        if head is None or not data.startswith(head.data):
            head = _plain_head(data[: data.find(b"\r\n\r\n") + 4])
            if head is None:
                return False
            self._head = head
        size = len(head.data)
        missing = size + head.length - len(data)
        if missing:
            return missing > 0 and self._awaits(data, size + head.length)
        try:
            work = self._take(head.headers, data[size:], local=self._local)
        except Exception:  # it fails on the long way, too, where that is answered and logged
            return False
        if work is None:
            return False
        self._stop_waiting()
        self._forget_deadline()
        self._plain = reply = PlainReply(self.wire, self.flow)
        self.tasks.add(self.loop.create_task(self._run(work, reply)))
        return True

    def _awaits(self, data: bytes, size: int) -> bool:
        """Many clients send the body behind the head."""
        if size > _MOST_BYTES:
            return False
        self._held = data
        self._forget_deadline()
        if self._waiting is None:
            self._waiting = self.loop.call_later(_BODY_SECONDS, self._give_up)
        return True

    def _give_up(self) -> None:
        data, self._held = self._held, b""
        self._to_uvicorn(data)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    async def _run(self, work: Work, reply: PlainReply) -> None:
        try:
            await work(reply)
        except Exception:
            log.exception("POST /mcp failed")
        finally:
            self.tasks.discard(asyncio.current_task(self.loop))
            self._plain = None
            if not self.transport.is_closing():
                self._go_on(reply)

    def _go_on(self, reply: PlainReply) -> None:
        """After a plain request: on with the next, where this one was answered to the end."""
        if not reply.begun:
            self.wire.write(_FAILED)
        if not reply.ended or self._last:
            self.transport.close()
            return
        self._used_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        self._release()

    def _release(self) -> None:
        """On with what came behind a request."""
        if self._held:
            data, self._held = self._held, b""
            self.flow.resume_reading()
            self.data_received(data)

    def timeout_keep_alive_handler(self) -> None:
        # Set once and looked at seldom: a timer for each of many quick requests would cost more than their answers.
        left = self._used_at + self.timeout_keep_alive - self.loop.time()
        if self._plain is not None or self._waiting is not None or left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(max(left, 1.0), self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        if self._plain is not None:
            self._last = True
            return
        if self._waiting is not None:
            self._give_up()  # what has begun is answered
        super().shutdown()

    # What uvicorn's parser and the transport tell.

    def on_message_begin(self) -> None:
        self._parsing = self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what follows a body is no header: nobody has checked it, and it has no end
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._headed = True
        self._forget_deadline()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._parsing = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._corked.flush()
        super().on_response_complete()
        if not self.transport.is_closing():
            self._release()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        self._forget_reader()
        self._stop_waiting()
        self._held = b""
        if self._plain is not None:
            self._plain.lose()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self._forget_reader()
        super().resume_writing()

    def _await_headers(self) -> None:
        self._forget_deadline()
        self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch_reader(self) -> None:
        self._stalled = self.loop.call_later(STALLED_SECONDS, self._judge_reader, self._unread())

    def _judge_reader(self, before: int) -> None:
        """Let a slow reader go on; one that took nothing would keep what waits for it, and the connection, for ever."""
        if self._unread() < before:
            self._watch_reader()
        else:
            self.transport.abort()

    def _unread(self) -> int:
        return self.transport.get_write_buffer_size()

    def _forget_reader(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
