"""How do agents reach us over stdin and stdout? The SDK serves the lines; raw results go out as they came."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from msgspec import Struct
from pydantic import ValidationError

from mcpproxy.activity.record import new_id
from mcpproxy.agent.peek import peek
from mcpproxy.calls.model import Caller
from mcpproxy.wire import envelope

if TYPE_CHECKING:
    from mcpproxy.agent.sdk import AgentServer, Placeholders

_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600


class StdioIncoming(Struct):
    """What the stdio face knows about a request, for the SDK's handlers."""

    caller: Caller
    request_id: str
    arguments: bytes = b"{}"
    gone: asyncio.Event | None = None


class StdioFace:
    """One agent at the other end of two pipes."""

    def __init__(self, server: AgentServer, placeholders: Placeholders, max_request_bytes: Callable[[], int]) -> None:
        self._server = server
        self._placeholders = placeholders
        self._max_request_bytes = max_request_bytes
        self._client_name: str | None = None
        self._modern = False

    async def serve(self) -> None:
        """Serve until stdin ends."""
        wire_in, wire_out = _claim()
        writer = _LineWriter(wire_out)
        read_send, read_receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write_send, write_receive = anyio.create_memory_object_stream[SessionMessage](0)

        async def take() -> None:
            async with read_send:
                async for line in _lines(wire_in, self._max_request_bytes):
                    message = self._read(line)
                    if isinstance(message, bytes):
                        await writer.write(message)
                    else:
                        await read_send.send(message)

        async def give() -> None:
            async with write_receive:
                async for sent in write_receive:
                    dumped = sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                    await writer.write(self._placeholders.restore(dumped))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            tasks.start_soon(give)
            await self._server.run(read_receive, write_send, self._server.create_initialization_options())
            tasks.cancel_scope.cancel()

    def _read(self, line: bytes | None) -> SessionMessage | bytes:
        """A line as the SDK's message, or the error that answers it."""
        if line is None:
            return envelope.failure(None, _INVALID_REQUEST, "The message is larger than max_request_bytes.")
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValidationError, ValueError, RecursionError):
            return envelope.failure(None, _PARSE_ERROR, "Parse error: the line is not one JSON-RPC message.")
        return SessionMessage(message, metadata=ServerMessageMetadata(request_context=self._incoming(line)))

    def _incoming(self, line: bytes) -> StdioIncoming:
        seen = peek(line)
        self._client_name = seen.client_name or self._client_name
        self._modern = self._modern or seen.modern
        caller = Caller(source="mcp", key="stdio", client_name=self._client_name, modern=self._modern)
        return StdioIncoming(caller, new_id(), seen.arguments)


def _claim() -> tuple[int, int]:
    """Take stdin and stdout for the protocol; whatever else prints in this process goes to stderr."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout = sys.stderr
    return wire_in, wire_out


class _LineWriter:
    """Writes whole lines, one after the other, without holding up the event loop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = asyncio.Lock()

    async def write(self, message: bytes) -> None:
        """Write one message as one line."""
        async with self._turn:
            await asyncio.to_thread(self._write, envelope.one_line(message) + b"\n")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


async def _lines(descriptor: int, limit: Callable[[], int]) -> Any:
    """The lines of a descriptor, read in a thread that blocks nobody; None stands for one over the limit."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | EOFError | None] = asyncio.Queue(maxsize=64)

    def put(item: bytes | EOFError | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended before us
            asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()

    def read() -> None:
        with os.fdopen(descriptor, "rb", buffering=1024 * 1024) as stream:
            while line := stream.readline(limit() + 2):
                if line.endswith(b"\n") or len(line) <= limit() + 1:
                    if line.strip():
                        put(line.strip())
                    continue
                while line and not line.endswith(b"\n"):
                    line = stream.readline(1024 * 1024)
                put(None)
        put(EOFError())

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while not isinstance(item := await queue.get(), EOFError):
        yield item
