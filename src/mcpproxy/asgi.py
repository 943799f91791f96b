"""What do all HTTP faces need of a request? Its headers, its body within bounds, and a short way to answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from mcpproxy.deadline import Deadline
from mcpproxy.wire.envelope import one_line

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

BODY_SECONDS = 30.0
"""How long a client may take to send a body."""

Headed = Sequence[tuple[bytes, bytes]]
"""Headers of an answer."""
JSON_TYPE: Final = (b"content-type", b"application/json")
STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)

_WATCH_AFTER = 0.05
_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.-]{1,128}\Z")


class BodyTooLarge(Exception):
    """The request body is over the limit."""

    status = 413


class BodyTooSlow(Exception):
    """The request body did not come in time."""

    status = 408


class Gone(Exception):
    """The client left."""


class Headers:
    """A request's headers by lower-case name; knows when one is given twice."""

    __slots__ = ("_known", "_values", "repeated")

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[bytes, bytes] = {}
        self.repeated: set[bytes] = set()
        self._known: dict[Callable[[Headers], bool], bool] = {}
        for name, value in pairs:
            if name in self._values:
                self.repeated.add(name)
            # White space around a value is not part of it (RFC 9110 5.5); the server leaves it there.
            self._values[name] = value.strip(b" \t")

    def once(self, test: Callable[[Headers], bool]) -> bool:
        """Whether a test holds that depends on nothing else. Requests of one connection may share their headers."""
        found = self._known.get(test)
        if found is None:
            found = self._known[test] = test(self)
        return found

    def get(self, name: bytes) -> str | None:
        """The (last) value of a header."""
        value = self._values.get(name)
        return value.decode("latin-1") if value is not None else None

    def raw(self, name: bytes) -> bytes:
        """The (last) value of a header, or nothing."""
        return self._values.get(name, b"")

    def names(self) -> Iterable[bytes]:
        """Every header's name."""
        return self._values

    def request_id(self) -> str | None:
        """The caller's own id for this request, where it has the right form."""
        value = self._values.get(b"x-request-id")
        return value.decode() if value is not None and _REQUEST_ID.match(value) else None


def is_local(scope: Scope) -> bool:
    """Whether a request came over the unix socket, where ASGI names a path and no port."""
    server = scope.get("server")
    return server is not None and server[1] is None


async def read_body(receive: Receive, headers: Headers, limit: int) -> bytes:
    """The whole request body, within a size and a time."""
    declared = headers.raw(b"content-length")
    if declared.isdigit() and int(declared) > limit:
        raise BodyTooLarge(_too_large(limit))
    parts: list[bytes] = []
    size = 0
    try:
        with Deadline(asyncio.get_running_loop(), BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Gone
                part = message.get("body", b"")
                size += len(part)
                if size > limit:
                    raise BodyTooLarge(_too_large(limit))
                parts.append(part)
                if not message.get("more_body"):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        raise BodyTooSlow(f"The request body did not arrive within {BODY_SECONDS:g} s.") from None


def _too_large(limit: int) -> str:
    return f"The request body is larger than max_request_bytes ({limit} bytes)."


class Reply(Protocol):
    """Where the answer to one request goes: JSON in one piece, or a stream of events."""

    def watch(self, gone: Callable[[], None]) -> None:
        """Have it said when the client leaves before the answer."""

    def unwatch(self) -> None:
        """Nobody wants to know any more."""

    async def send_json(self, body: bytes, headers: Headed) -> None:
        """Answer with one JSON text."""

    async def begin_stream(self, headers: Headed) -> None:
        """Begin a stream."""

    async def send_event(self, message: bytes, *, last: bool = False) -> None:
        """Send one message in it."""


Work = Callable[[Reply], Awaitable[None]]
"""What it takes to answer one request."""


class AsgiReply:
    """A reply by way of ASGI."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._planned: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None

    def watch(self, gone: Callable[[], None]) -> None:
        """Have it said when the client leaves before the answer."""

        def begin() -> None:
            self._watching = asyncio.create_task(self._wait(gone))

        # Most calls are over before a client could leave: those never pay for the watch.
        self._planned = asyncio.get_running_loop().call_later(_WATCH_AFTER, begin)

    async def _wait(self, gone: Callable[[], None]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        gone()

    def unwatch(self) -> None:
        """Nobody wants to know any more."""
        if self._planned is not None:
            self._planned.cancel()
        if self._watching is not None:
            self._watching.cancel()

    async def send_json(self, body: bytes, headers: Headed) -> None:
        """Answer with one JSON text."""
        await respond(self._send, 200, body, (JSON_TYPE, *headers))

    async def begin_stream(self, headers: Headed) -> None:
        """Begin a stream."""
        await self._send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})

    async def send_event(self, message: bytes, *, last: bool = False) -> None:
        """Send one message in it."""
        await self._send({"type": "http.response.body", "body": event_of(message), "more_body": not last})


def event_of(message: bytes) -> bytes:
    """A message as an event of a stream."""
    return b"".join((b"event: message\r\ndata: ", one_line(message), b"\r\n\r\n"))


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body which was read already, then goes on with the real one."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def respond(send: Send, status: int, body: Any, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Answer with a JSON body, or with bytes of which the headers tell the type."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    start = [(b"content-length", str(len(data)).encode()), *headers]
    if not isinstance(body, bytes):
        start.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": data})
