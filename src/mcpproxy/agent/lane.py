"""May this request take the short way? A lane beside the SDK for exactly one shape of request, all bytes raw.

The lane answers only what it fully understands: one `tools/call` of a call_tool variant, strictly decoded, with
the very headers that the SDK demands, in a live session, or in a 2026-07-28 envelope that the SDK itself has
accepted before. Everything else is left, unread, to the SDK, which owns every protocol error.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic_core import from_json

from mcpproxy.activity.record import new_id
from mcpproxy.agent.peek import VERSION_KEY, client_name
from mcpproxy.agent.sdk import REQUEST_CANCELLED
from mcpproxy.agent.sessions import Session
from mcpproxy.asgi import Headed, Headers, Reply
from mcpproxy.calls.model import Caller
from mcpproxy.calls.reports import Reports
from mcpproxy.wire import envelope

if TYPE_CHECKING:
    from mcpproxy.agent.sdk import Dispatch

MODERN = b"2026-07-28"
HANDSHAKE = frozenset((b"2025-03-26", b"2025-06-18", b"2025-11-25"))
MAX_ENVELOPES = 1000
NO_HEADERS = Headers(())
_MAX_ENVELOPE_BYTES = 8192
# Texts under these names say nothing of the client, and may be others with each call.
_TRACE = frozenset(("traceparent", "tracestate", "baggage"))
_ROUTING = frozenset(
    (b"content-type", b"accept", b"mcp-protocol-version", b"mcp-session-id", b"mcp-method", b"mcp-name")
)
_JSON_TYPES = frozenset((b"application/json", b"application/json; charset=utf-8", b"application/json;charset=utf-8"))

Name = Literal["call_tool_read", "call_tool_write", "call_tool_destructive"]


class Arrived(Struct, frozen=True):
    """A request as it came in: who sent it, in which session, and all of its body."""

    headers: Headers
    body: bytes
    caller: Caller
    request_id: str
    session: Session | None


class _Params(Struct, forbid_unknown_fields=True, rename={"meta": "_meta"}):
    name: Name
    arguments: Raw = Raw(b"")
    meta: dict[str, Raw] | UnsetType = UNSET


class _Request(Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


class Taken(Struct, frozen=True):
    """A request that the lane answers."""

    request: _Request
    caller: Caller
    request_id: str
    session: Session | None
    token: int | str | None
    headers: Headers


_decode = msgspec.json.Decoder(_Request).decode
_decode_token = msgspec.json.Decoder(int | str).decode


class Lane:
    """The short way for proxied calls."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        self._loop = asyncio.get_running_loop()
        self._accepted: OrderedDict[Envelope, str | None] = OrderedDict()
        self._running: dict[tuple[str, int | str], asyncio.Task[Any]] = {}

    def read(self, arrived: Arrived) -> Taken | None:
        """The request, where the lane takes it; it is left untouched otherwise."""
        headers, caller, session = arrived.headers, arrived.caller, arrived.session
        request = _read(arrived.body)
        if request is None or not headers.once(_plain):
            return None
        meta = request.params.meta
        token = _token(meta)
        if token is None:
            return None
        if session is not None:
            if headers.raw(b"mcp-protocol-version") not in HANDSHAKE:
                return None
        else:
            found = _modern_envelope(headers, request, meta)
            if found is None or found not in self._accepted:
                return None
            self._accepted.move_to_end(found)
            caller = msgspec.structs.replace(caller, client_name=self._accepted[found])
        return Taken(request, caller, arrived.request_id, session, None if token is UNSET else token, headers)

    def read_line(self, line: bytes, accepted: Mapping[Envelope, Caller]) -> Taken | None:
        """The same for a line of a connection that has one client, with the envelopes that the SDK took there."""
        request = _read(line)
        if request is None:
            return None
        token = _token(request.params.meta)
        caller = accepted.get(_parts(request.params.meta))
        if token is None or caller is None:
            return None
        return Taken(request, caller, new_id(), None, None if token is UNSET else token, NO_HEADERS)

    async def run(self, taken: Taken, reply: Reply) -> None:
        """Make the call and answer it."""
        request, session = taken.request, taken.session
        task = asyncio.current_task(self._loop)
        assert task is not None
        place = (session.id, request.id) if session is not None else None
        if place is not None:
            self._running[place] = task
        exchange = _Exchange(reply, () if session is None else ((b"mcp-session-id", session.id.encode()),), taken.token)
        reply.watch(lambda: exchange.leave(task))
        try:
            try:
                result = await self._dispatch(
                    request.params.name,
                    bytes(request.params.arguments) or b"{}",
                    taken.caller,
                    taken.request_id,
                    exchange.report if taken.token is not None else None,
                    carried=(taken.headers, request.params.meta),
                )
            finally:
                reply.unwatch()
        except asyncio.CancelledError:
            if exchange.gone:
                task.uncancel()  # we ended it ourselves, and there is nobody left to answer
                return
            if task.uncancel() > 0:
                raise
            # `notifications/cancelled` named this call; the handshake era still owes it an answer.
            await exchange.finish(envelope.failure(request.id, REQUEST_CANCELLED, "Request cancelled"))
        else:
            await exchange.finish(envelope.answer(request.id, result))
        finally:
            exchange.close()
            if place is not None and self._running.get(place) is task:
                del self._running[place]

    def cancel(self, session_id: str, request_id: int | str) -> None:
        """A client of the handshake era gave up one of its calls."""
        task = self._running.pop((session_id, request_id), None)
        if task is not None:
            task.cancel()

    def learn(self, headers: Headers, body: bytes, status: int) -> None:
        """The SDK answered a request: where it took a modern envelope, the lane may take the same one next time."""
        if status != 200 or headers.raw(b"mcp-protocol-version") != MODERN or len(body) > 4 * _MAX_ENVELOPE_BYTES:
            return
        request = _read(body)
        if request is None or not headers.once(_plain):
            return
        meta = request.params.meta
        found = _modern_envelope(headers, request, meta)
        if found is None or meta is UNSET:
            return
        while len(self._accepted) >= MAX_ENVELOPES:
            self._accepted.popitem(last=False)
        self._accepted[found] = client_name(meta)


Envelope = tuple[tuple[str, bytes], ...]


def _read(body: bytes) -> _Request | None:
    try:
        request = _decode(body)
        from_json(body)  # what stays raw is not read above: the SDK's own parser has to take it, too
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    arguments = bytes(request.params.arguments)
    return request if arguments[:1] in (b"", b"{") else None


def _plain(headers: Headers) -> bool:
    if headers.repeated & _ROUTING or headers.raw(b"content-type") not in _JSON_TYPES:
        return False
    if not _accepts_both(headers.raw(b"accept")):
        return False
    return not any(name.startswith(b"mcp-param-") for name in headers.names())


@lru_cache(maxsize=256)
def _accepts_both(accept: bytes) -> bool:
    named = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    return {b"application/json", b"text/event-stream"} <= named


def _token(meta: dict[str, Raw] | UnsetType) -> int | str | UnsetType | None:
    """The progress token, UNSET where none is asked for, None where it is nothing the lane knows."""
    if meta is UNSET or "progressToken" not in meta:
        return UNSET
    try:
        token: int | str = _decode_token(meta["progressToken"])
    except msgspec.MsgspecError:
        return None
    return token


def _modern_envelope(headers: Headers, request: _Request, meta: dict[str, Raw] | UnsetType) -> Envelope | None:
    """What identifies a client's envelope, where headers and body say the same."""
    if (
        meta is UNSET
        or headers.raw(b"mcp-protocol-version") != MODERN
        or headers.raw(b"mcp-method") != b"tools/call"
        or headers.raw(b"mcp-name") != request.params.name.encode()
        or bytes(meta.get(VERSION_KEY, b"")) != b'"2026-07-28"'
    ):
        return None
    parts = _parts(meta)
    return parts if _is_small(parts) else None


def envelope_of(line: bytes) -> tuple[int | str, Envelope] | None:
    """The id and the envelope of a line that the lane would take, had the SDK taken one with this envelope before."""
    request = _read(line)
    if request is None:
        return None
    parts = _parts(request.params.meta)
    return (request.id, parts) if _is_small(parts) else None


def _parts(meta: dict[str, Raw] | UnsetType) -> Envelope:
    if meta is UNSET:
        return ()
    parts = ((key, bytes(value)) for key, value in meta.items() if key != "progressToken")
    return tuple(sorted(part for part in parts if part[0] not in _TRACE or part[1][:1] != b'"'))


def _is_small(parts: Envelope) -> bool:
    return sum(len(key) + len(value) for key, value in parts) <= _MAX_ENVELOPE_BYTES


class _Exchange:
    """One request's answer: JSON, or a stream of events from the first progress on."""

    def __init__(self, reply: Reply, headers: Headed, token: int | str | None) -> None:
        self._reply = reply
        self._headers = headers
        self._token = token
        self._reports: Reports | None = None
        self._streaming: asyncio.Task[None] | None = None
        self.gone = False

    def leave(self, call: asyncio.Task[Any]) -> None:
        """The client has left, and its call with it."""
        self.gone = True
        call.cancel()

    def report(self, params: bytes) -> None:
        """Pass a progress report on under the client's own token."""
        report = envelope.as_dict(params)
        report["progressToken"] = self._token
        if self._reports is None:
            self._reports = Reports()
            self._streaming = asyncio.create_task(self._stream(self._reports))
        self._reports.put(envelope.notification("notifications/progress", envelope.encode(report)))

    async def _stream(self, reports: Reports) -> None:
        await self._reply.begin_stream(self._headers)
        while (report := await reports.get()) is not None:
            await self._reply.send_event(report)

    async def finish(self, message: bytes) -> None:
        """Send the answer, behind whatever progress is still under way."""
        if self._reports is None or self._streaming is None:
            await self._reply.send_json(message, self._headers)
            return
        self._reports.end()
        await self._streaming
        await self._reply.send_event(message, last=True)

    def close(self) -> None:
        """However it ended, nothing more is sent."""
        if self._streaming is not None:
            self._streaming.cancel()
