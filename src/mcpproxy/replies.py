"""How does an answer get onto a connection? In as few pieces as it can be: each is a system call on either side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcpproxy.asgi import JSON_TYPE, STREAM_HEADERS, Headed, event_of

if TYPE_CHECKING:
    from uvicorn.protocols.http.flow_control import FlowControl

_JOINED_BYTES = 16 * 1024


class PlainReply:
    """The answer to a plain request, straight to its connection."""

    __slots__ = ("_flow", "_gone", "_wire", "begun", "ended")

    def __init__(self, wire: asyncio.Transport, flow: FlowControl) -> None:
        self._wire = wire
        self._flow = flow
        self._gone: Callable[[], None] | None = None
        self.begun = False
        self.ended = False

    def watch(self, gone: Callable[[], None]) -> None:
        """Have it said when the client leaves before the answer."""
        self._gone = gone

    def unwatch(self) -> None:
        """Nobody wants to know any more."""
        self._gone = None

    def lose(self) -> None:
        """The client has left."""
        if self._gone is not None:
            self._gone()

    async def send_json(self, body: bytes, headers: Headed) -> None:
        """Answer with one JSON text."""
        head = _head_of((b"content-length", b"%d" % len(body)), JSON_TYPE, *headers)
        await self._write(head + body if len(body) < _JOINED_BYTES else (head, body))
        self.begun = self.ended = True

    async def begin_stream(self, headers: Headed) -> None:
        """Begin a stream."""
        await self._write(_head_of(*STREAM_HEADERS, *headers, (b"transfer-encoding", b"chunked")))
        self.begun = True

    async def send_event(self, message: bytes, *, last: bool = False) -> None:
        """Send one message in it."""
        event = event_of(message)
        await self._write(b"".join((b"%x\r\n" % len(event), event, b"\r\n0\r\n\r\n" if last else b"\r\n")))
        self.ended = last

    async def _write(self, data: bytes | tuple[bytes, bytes]) -> None:
        # Whoever waits here for the client may be cancelled: only what was written has begun, or ended.
        if self._flow.write_paused:
            await self._flow.drain()
        if self._wire.is_closing():
            return
        if isinstance(data, bytes):
            self._wire.write(data)
        else:
            self._wire.writelines(data)


def _head_of(*headers: tuple[bytes, bytes]) -> bytes:
    return b"HTTP/1.1 200 OK\r\n%b\r\n" % b"".join([b"%b: %b\r\n" % header for header in headers])


class Corked:
    """A transport that sends the head of an answer along with what follows: one system call less on either side."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep a head until the next piece, where one of a known length follows and no stream."""
        if data.startswith(b"HTTP/1.") and b"\r\ncontent-length: " in data:
            self.flush()
            self._head = data
        elif self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Send what is left, then close."""
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        """Send a head that nothing followed."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)
