"""How do lines come in and go out? By the event loop where these are pipes, by threads where they are files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable
from typing import cast

from mcpproxy.wire.envelope import one_line

_CHUNK = 64 * 1024
_CLOSE_SECONDS = 5.0


class LinesIn(asyncio.Protocol):
    """Cuts what arrives into lines and hands each on; None stands for one over the limit."""

    def __init__(
        self, take: Callable[[bytes | None], None], ended: Callable[[], None], limit: Callable[[], int]
    ) -> None:
        self._take = take
        self._ended = ended
        self._limit = limit
        self._line = bytearray()
        self._skipping = False
        self._pipe: asyncio.ReadTransport | None = None
        self._room = asyncio.Event()
        self._room.set()

    async def open(self, descriptor: int) -> None:
        """Read from this descriptor until it ends."""
        loop = asyncio.get_running_loop()
        if _is_pipe(descriptor):
            await loop.connect_read_pipe(lambda: self, os.fdopen(descriptor, "rb", buffering=0))
        else:
            threading.Thread(target=self._read, args=(descriptor, loop), name="stdin", daemon=True).start()

    def hold(self, held: bool) -> None:
        """Read no more for now, or go on."""
        if held == (not self._room.is_set()):
            return
        if held:
            self._room.clear()
        else:
            self._room.set()
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.pause_reading() if held else self._pipe.resume_reading()

    def _read(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # the loop may have ended before us
            while data := os.read(descriptor, _CHUNK):
                asyncio.run_coroutine_threadsafe(self._feed(data), loop).result()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self.connection_lost, None)

    async def _feed(self, data: bytes) -> None:
        self.data_received(data)
        await self._room.wait()

    # Called by the pipe.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast(asyncio.ReadTransport, transport)  # uvloop's have no part in that class

    def data_received(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            self._end_line()
            start = end + 1
        self._add(data[start:])

    def connection_lost(self, exc: Exception | None) -> None:
        if self._line or self._skipping:
            self._end_line()  # a last line without an end counts as well
        self._ended()

    def _add(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._line += piece
        if len(self._line) > self._limit() + 1:
            self._line.clear()
            self._skipping = True

    def _end_line(self) -> None:
        if self._skipping:
            self._skipping = False
            self._take(None)
            return
        line = bytes(self._line).strip()
        self._line.clear()
        if line:
            self._take(line)


class LinesOut(asyncio.BaseProtocol):
    """Writes whole lines, one after the other, without holding up the event loop."""

    def __init__(self) -> None:
        self._pipe: asyncio.WriteTransport | None = None
        self._descriptor = -1
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()

    async def open(self, descriptor: int) -> None:
        """Write to this descriptor."""
        self._descriptor = descriptor
        if _is_pipe(descriptor):
            loop = asyncio.get_running_loop()
            self._pipe, _ = await loop.connect_write_pipe(lambda: self, os.fdopen(descriptor, "wb", buffering=0))

    async def write(self, message: bytes) -> None:
        """Write one message as one line."""
        line = one_line(message) + b"\n"
        if self._pipe is None:
            async with self._turn:
                await asyncio.to_thread(self._write, line)
            return
        while not self._room.is_set():
            await self._room.wait()
        if not self._pipe.is_closing():
            self._pipe.write(line)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    async def close(self) -> None:
        """Let what was written go out, but wait for no one who does not read."""
        if self._pipe is None:
            return
        self._pipe.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._lost.wait()

    # Called by the pipe.

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        self._room.set()


def _is_pipe(descriptor: int) -> bool:
    """Whether the event loop can wait for it. A terminal is left as it is: others share it."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
