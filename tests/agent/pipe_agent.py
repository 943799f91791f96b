"""An agent at the other end of two pipes or sockets, and a face that serves it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.calls.proxy import Proxy

from mcpproxy.agent import stdio
from mcpproxy.agent.peek import CLIENT_KEY, VERSION_KEY
from mcpproxy.agent.stdio import StdioFace

CLIENT = {"name": "pipe-client", "version": "1"}
ENVELOPE = {
    VERSION_KEY: "2026-07-28",
    CLIENT_KEY: CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
READS = '{"name":"echo:reads"}'


class Agent:
    """An agent at the other end, which reads its answers as they come."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        write: Callable[[bytes], None],
        hang_up: Callable[[], None],
        stop_reading: Callable[[], None],
        face: StdioFace,
        serving: asyncio.Task[None],
    ) -> None:
        self._reader = reader
        self.write = write
        self.hang_up = hang_up
        self.stop_reading = stop_reading
        self.face = face
        self.serving = serving
        self.era = "legacy"
        self._next = 0

    def send(self, method: str, params: str, request_id: int | str | None = None) -> int | str:
        """Ask, and do not wait for the answer."""
        if request_id is None:
            self._next += 1
            request_id = self._next
        identity = json.dumps(request_id)
        self.write(f'{{"jsonrpc":"2.0","id":{identity},"method":"{method}","params":{params}}}\n'.encode())
        return request_id

    def tell(self, method: str, params: str = "{}") -> None:
        """Say something that needs no answer."""
        self.write(f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}\n'.encode())

    async def line(self) -> bytes:
        """The next line; an empty one after the last."""
        async with asyncio.timeout(20):
            return await self._reader.readline()

    async def answer(self) -> bytes:
        """The next line that is an answer."""
        while True:
            line = await self.line()
            if b'"method":' not in line[:60]:
                return line

    def call(self, tool: str, arguments: str, *, token: str | None = None, request_id: int | str | None = None) -> Any:
        """Ask for a call, in the agent's era, and do not wait."""
        meta: dict[str, Any] = {} if token is None else {"progressToken": token}
        meta |= ENVELOPE if self.era == "modern" else {}
        said = f',"_meta":{json.dumps(meta)}' if meta else ""
        return self.send("tools/call", f'{{"name":"{tool}","arguments":{arguments}{said}}}', request_id)

    async def called(self, tool: str, arguments: str, **more: Any) -> bytes:
        """Make a call and wait for its answer."""
        self.call(tool, arguments, **more)
        return await self.answer()

    async def greet(self, era: str) -> None:
        """Begin, and make the call by which the lane learns what the SDK takes."""
        self.era = era
        if era == "legacy":
            self.send("initialize", json.dumps(HANDSHAKE), "hello")
            assert b'"serverInfo"' in await self.answer()
            self.tell("notifications/initialized")
        assert b'"result"' in await self.called("call_tool_read", READS)


class Unlearned(StdioFace):
    """The same face without its lane."""

    def _accept(self, parts: Any, caller: Any) -> None:
        return None


@contextlib.contextmanager
def ends(kind: str) -> Iterator[tuple[int, int, int, int]]:
    """Two connections: theirs to read, theirs to write, ours to read, ours to write."""
    if kind == "one socket":  # as inetd hands it over
        near, far = socket.socketpair()
        again, other = os.dup(far.fileno()), os.dup(near.fileno())
        yield far.detach(), again, near.detach(), other
    elif kind == "pipes":
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        yield in_read, out_write, out_read, in_write
    else:
        (near_in, far_in), (near_out, far_out) = socket.socketpair(), socket.socketpair()
        yield far_in.detach(), far_out.detach(), near_out.detach(), near_in.detach()


@contextlib.asynccontextmanager
async def talking(proxy: Proxy, *, lane: bool = True, kind: str = "pipes") -> AsyncIterator[Agent]:
    """An agent and a face that serves it."""
    agent, loop = proxy.app.agent, asyncio.get_running_loop()
    build = StdioFace if lane else Unlearned
    face = build(agent._server, agent._lane, agent._placeholders, lambda: proxy.app.config.max_request_bytes)
    with ends(kind) as (wire_in, wire_out, reads, writes), pytest.MonkeyPatch.context() as patch:
        patch.setattr(stdio, "_claim", lambda: (wire_in, wire_out))
        serving = asyncio.create_task(face.serve())
        reader = asyncio.StreamReader(limit=2**22)
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reads, "rb", buffering=0)
        )
        out = os.fdopen(writes, "wb", buffering=0)
        agent_ = Agent(reader, lambda data: _write(out.fileno(), data), out.close, pipe.close, face, serving)
        try:
            yield agent_
        finally:
            if kind == "one socket":
                socket.socket(fileno=os.dup(out.fileno())).shutdown(socket.SHUT_WR)
            out.close()
            async with asyncio.timeout(20):
                await asyncio.wait({serving})
            pipe.close()


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
