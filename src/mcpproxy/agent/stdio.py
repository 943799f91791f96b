"""How do agents reach us over stdin and stdout? The SDK serves the lines, the lane those that it knows; raw results
go out as they came."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from msgspec import Struct
from pydantic import ValidationError

from mcpproxy.activity.record import new_id
from mcpproxy.agent.lane import MAX_ENVELOPES, NO_HEADERS, Envelope, Lane, Taken, envelope_of
from mcpproxy.agent.peek import Carried, peek
from mcpproxy.agent.pipes import LinesIn, LinesOut, can_wait
from mcpproxy.asgi import Headed
from mcpproxy.calls.model import Caller
from mcpproxy.wire import envelope

if TYPE_CHECKING:
    from mcpproxy.agent.sdk import AgentServer, Placeholders

log = logging.getLogger(__name__)

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_MOST_WAITING = 64
"""Lines that the SDK has not taken yet, and errors that the agent has not."""
_MOST_UNDER_WAY = 1000
"""Calls by the lane; more of them are the SDK's."""
_HANG_UP_SECONDS = 2.0
_SETTLE_SECONDS = 1.0
_LOOK_SECONDS = 0.01


class StdioIncoming(Struct):
    """What the stdio face knows about a request, for the SDK's handlers."""

    caller: Caller
    request_id: str
    arguments: bytes = b"{}"
    gone: asyncio.Event | None = None
    carried: Carried | None = None


class StdioFace:
    """One agent at the other end of two pipes.

    The lane takes a call whose envelope the SDK has taken on this connection before; where it comes again, so would
    the SDK's consent. A new handshake ends that.
    """

    def __init__(
        self, server: AgentServer, lane: Lane, placeholders: Placeholders, max_request_bytes: Callable[[], int]
    ) -> None:
        self._server = server
        self._lane = lane
        self._placeholders = placeholders
        self._client_name: str | None = None
        self._in = LinesIn(self._take, self._end_of_lines, max_request_bytes)
        self._out = LinesOut(self._end_of_lines)
        self._for_the_sdk: deque[SessionMessage] = deque()
        self._arrived = asyncio.Event()
        self._accepted: OrderedDict[Envelope, Caller] = OrderedDict()
        self._asked: OrderedDict[int | str, tuple[Envelope, Caller]] = OrderedDict()
        """Calls that the SDK has not answered yet: with a result it will have taken their envelopes."""
        self._unanswered: OrderedDict[int | str, None] = OrderedDict()
        """All that the SDK has not answered yet."""
        self._under_way: dict[int | str, _LineReply] = {}
        """By id, of which a cancellation names the last that has it."""
        self._replies: set[_LineReply] = set()
        self._errors = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False

    async def serve(self) -> None:
        """Serve until stdin ends."""
        wire_in, wire_out = _claim()
        read_send, read_receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write_send, write_receive = anyio.create_memory_object_stream[SessionMessage](0)

        async def give_to_the_sdk() -> None:
            async with read_send:
                while (message := await self._next()) is not None:
                    await read_send.send(message)

        async def take_from_the_sdk() -> None:
            async with write_receive:
                async for sent in write_receive:
                    dumped = sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                    await self._out.write(self._placeholders.restore(dumped))
                    self._answered(sent)

        wait_in, wait_out = can_wait(wire_in, wire_out), can_wait(wire_out, wire_in)
        await self._out.open(wire_out, wait=wait_out)
        await self._in.open(wire_in, wait=wait_in)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(give_to_the_sdk)
                tasks.start_soon(take_from_the_sdk)
                await self._server.run(read_receive, write_send, self._server.create_initialization_options())
                tasks.cancel_scope.cancel()
        finally:
            await self._hang_up()

    def _take(self, line: bytes | None) -> None:
        """A line came in: the lane's, or the SDK's. What it changes here holds for the next one already."""
        quick = line is not None and self._accepted and len(self._replies) < _MOST_UNDER_WAY
        taken = self._lane.read_line(line, self._accepted) if line is not None and quick else None
        if taken is not None:
            reply = _LineReply(self._out, taken.request.id)
            self._replies.add(reply)
            self._under_way[coerce_request_id(taken.request.id)] = reply
            self._start(self._answer(taken, reply))
        elif isinstance(message := self._read(line), bytes):
            self._errors += 1
            self._start(self._refuse(message))
        else:
            self._for_the_sdk.append(message)
            self._arrived.set()
        self._in.hold(self._is_full())

    async def _refuse(self, message: bytes) -> None:
        await self._out.write(message)
        self._errors -= 1

    def _end_of_lines(self) -> None:
        """Nobody asks any more, or nobody can be answered."""
        self._ended = True
        self._arrived.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._in.hold(self._is_full())

    def _is_full(self) -> bool:
        return len(self._for_the_sdk) >= _MOST_WAITING or self._errors >= _MOST_WAITING

    async def _next(self) -> SessionMessage | None:
        """The next message for the SDK; None after the last."""
        while not self._for_the_sdk:
            if self._ended:
                await self._settle()
                return None
            self._arrived.clear()
            await self._arrived.wait()
        message = self._for_the_sdk.popleft()
        self._in.hold(self._is_full())
        return message

    async def _settle(self) -> None:
        """Let what was asked last be answered: with `echo … | mcpproxy` the lines end before that."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while (self._unanswered or self._tasks) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)

    def _read(self, line: bytes | None) -> SessionMessage | bytes:
        """A line as the SDK's message, or the error that answers it."""
        if line is None:
            return envelope.failure(None, _INVALID_REQUEST, "The message is larger than max_request_bytes.")
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValidationError, ValueError, RecursionError):
            return envelope.failure(None, _PARSE_ERROR, "Parse error: the line is not one JSON-RPC message.")
        return SessionMessage(message, metadata=ServerMessageMetadata(request_context=self._incoming(line, message)))

    def _incoming(self, line: bytes, message: types.JSONRPCMessage) -> StdioIncoming:
        seen = peek(line)
        self._client_name = seen.client_name or self._client_name
        modern = seen.modern and seen.method != "initialize"
        caller = Caller(source="mcp", key="stdio", client_name=self._client_name, modern=modern)
        if isinstance(message, types.JSONRPCRequest):
            self._asked.pop(message.id, None)
            _keep(self._unanswered, coerce_request_id(message.id), None)
            if seen.method == "tools/call":
                self._note(line, caller)
            elif seen.method == "initialize":
                self._accepted.clear()
                self._asked.clear()
        elif seen.method == "notifications/cancelled" and seen.request_id is not None:
            self._cancel(seen.request_id)
        return StdioIncoming(caller, new_id(), seen.arguments, carried=(NO_HEADERS, seen.meta))

    # The lane.

    def _note(self, line: bytes, caller: Caller) -> None:
        """The SDK is asked to make a call: it may take it or not."""
        found = envelope_of(line)
        if found is not None:
            _keep(self._asked, found[0], (found[1], caller))

    def _answered(self, sent: SessionMessage) -> None:
        """The SDK has answered: a call that it took may come by the lane the next time."""
        message = sent.message
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError) or message.id is None:
            return
        self._unanswered.pop(coerce_request_id(message.id), None)
        found = self._asked.pop(message.id, None)
        if found is not None and isinstance(message, types.JSONRPCResponse):
            self._accept(*found)

    def _accept(self, parts: Envelope, caller: Caller) -> None:
        _keep(self._accepted, parts, caller)

    async def _answer(self, taken: Taken, reply: _LineReply) -> None:
        request_id = taken.request.id
        try:
            if not reply.given_up:
                await self._lane.run(taken, reply)
        except Exception as error:
            log.exception("a call failed")
            await reply.send_json(envelope.failure(request_id, types.INTERNAL_ERROR, str(error)), ())
        finally:
            self._replies.discard(reply)
            if self._under_way.get(coerce_request_id(request_id)) is reply:
                del self._under_way[coerce_request_id(request_id)]

    def _cancel(self, request_id: int | str) -> None:
        """The agent gave up a call, and gets no answer to it."""
        self._asked.pop(request_id, None)
        self._unanswered.pop(coerce_request_id(request_id), None)
        reply = self._under_way.pop(coerce_request_id(request_id), None)
        if reply is not None:
            reply.give_up()

    async def _hang_up(self) -> None:
        """Nobody asks any more: end what is under way, say so as the SDK does, and let what was said go out."""
        self._in.close()
        for reply in tuple(self._replies):
            unanswered = not reply.answered and not reply.given_up
            reply.give_up()
            if unanswered:
                closed = envelope.failure(reply.request_id, types.CONNECTION_CLOSED, "Connection closed")
                self._start(self._out.write(closed))
        if self._tasks:
            _, stuck = await asyncio.wait(self._tasks, timeout=_HANG_UP_SECONDS)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
        await self._out.close(_HANG_UP_SECONDS)


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    while len(kept) >= MAX_ENVELOPES:
        kept.popitem(last=False)
    kept[key] = value


class _LineReply:
    """The answer to one request, as a line; progress in lines before it."""

    def __init__(self, out: LinesOut, request_id: int | str) -> None:
        self._out = out
        self.request_id = request_id
        self._gone: Callable[[], None] | None = None
        self.answered = False
        self.given_up = False

    def watch(self, gone: Callable[[], None]) -> None:
        """Have it said when the client no longer waits for the answer."""
        self._gone = gone

    def unwatch(self) -> None:
        """Nobody wants to know any more."""
        self._gone = None

    def give_up(self) -> None:
        """The client does not wait any longer."""
        self.given_up = True
        if self._gone is not None:
            self._gone()

    async def send_json(self, body: bytes, headers: Headed) -> None:
        """Answer, unless nobody waits any longer."""
        await self._write(body, last=True)

    async def begin_stream(self, headers: Headed) -> None:
        """Lines need no beginning."""

    async def send_event(self, message: bytes, *, last: bool = False) -> None:
        """Send a report, or the answer behind the reports."""
        await self._write(message, last=last)

    async def _write(self, message: bytes, *, last: bool) -> None:
        if not self.given_up:
            self.answered = last
            await self._out.write(message)


def _claim() -> tuple[int, int]:
    """Take stdin and stdout for the protocol; whatever else prints in this process goes to stderr."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout = sys.stderr
    return wire_in, wire_out
