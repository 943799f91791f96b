"""How do lines come in and go out? By the event loop where these are pipes, by threads where they are files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
import threading
from collections.abc import Callable
from typing import cast

from mcpproxy.wire.envelope import one_line

log = logging.getLogger(__name__)

_CHUNK = 64 * 1024


def can_wait(descriptor: int, other: int) -> bool:
    """Whether the event loop can wait for the descriptor. A terminal is left as it is: others share it.

    Nor is one socket for both ways, as inetd hands it over: who writes to it would read from it, too.
    """
    mode = os.fstat(descriptor).st_mode
    return (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and not os.path.sameopenfile(descriptor, other)


class LinesIn(asyncio.Protocol):
    """Cuts what arrives into lines and hands each on; None stands for one over the limit."""

    def __init__(
        self, take: Callable[[bytes | None], None], ended: Callable[[], None], limit: Callable[[], int]
    ) -> None:
        self._take = take
        self._ended = ended
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._line = bytearray()
        self._skipping = False
        self._rest = b""
        """What has arrived and was not looked at, since there was no room."""
        self._over = False
        self._closed = False
        self._pipe: asyncio.ReadTransport | None = None
        self._room = asyncio.Event()
        self._room.set()

    async def open(self, descriptor: int, *, wait: bool) -> None:
        """Read from this descriptor until it ends."""
        if wait:
            await self._loop.connect_read_pipe(lambda: self, os.fdopen(descriptor, "rb", buffering=0))
        else:
            threading.Thread(target=self._read, args=(descriptor,), name="stdin", daemon=True).start()

    def hold(self, held: bool) -> None:
        """Hand on no more for now, or go on."""
        if held and self._room.is_set():
            self._room.clear()
            self._pause(True)
        elif not held and not self._room.is_set():
            self._room.set()
            self._loop.call_soon(self._go_on)

    def close(self) -> None:
        """Whatever comes from now on is nobody's."""
        self._closed = True
        self._rest = b""
        self._room.set()
        if self._pipe is not None:
            self._pipe.close()

    def _pause(self, paused: bool) -> None:
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.pause_reading() if paused else self._pipe.resume_reading()

    def _go_on(self) -> None:
        data, self._rest = self._rest, b""
        self.data_received(data)
        if self._room.is_set():
            self._pause(False)
            if self._over:
                self._end()

    def _read(self, descriptor: int) -> None:
        """For a thread: the loop cannot wait for a file."""
        with contextlib.suppress(OSError, RuntimeError):  # the loop may have ended before us
            while not self._closed and (data := os.read(descriptor, _CHUNK)):
                asyncio.run_coroutine_threadsafe(self._feed(data), self._loop).result()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.connection_lost, None)

    async def _feed(self, data: bytes) -> None:
        self.data_received(data)
        while not self._room.is_set() or self._rest:
            await self._room.wait()
            await asyncio.sleep(0)

    # Called by the pipe.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast(asyncio.ReadTransport, transport)  # uvloop's have no part in that class

    def data_received(self, data: bytes) -> None:
        if not self._room.is_set():
            self._rest += data
            return
        start = 0
        while not self._closed and (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            self._end_line()
            start = end + 1
            if not self._room.is_set():
                self._rest = data[start:]
                return
        self._add(data[start:])

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        if self._room.is_set():
            self._end()

    def _end(self) -> None:
        if (self._line or self._skipping) and not self._closed:
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


class LinesOut(asyncio.Protocol):
    """Writes whole lines, one after the other, without holding up the event loop."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._on_loss = lost
        self._pipe: asyncio.WriteTransport | None = None
        self._descriptor = -1
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._room.set()
        self._lost = asyncio.Event()

    async def open(self, descriptor: int, *, wait: bool) -> None:
        """Write to this descriptor."""
        self._descriptor = descriptor
        if wait:
            loop = asyncio.get_running_loop()
            self._pipe, _ = await loop.connect_write_pipe(lambda: self, os.fdopen(descriptor, "wb", buffering=0))

    async def write(self, message: bytes) -> None:
        """Write one message as one line; where nobody can read it any more it is dropped."""
        line = one_line(message) + b"\n"
        if self._pipe is None:
            async with self._turn:
                if not self._lost.is_set():
                    await self._write_in_thread(line)
            return
        while not self._room.is_set():
            await self._room.wait()
        if not self._pipe.is_closing():
            self._pipe.write(line)

    async def _write_in_thread(self, line: bytes) -> None:
        try:
            await asyncio.to_thread(self._write, line)
        except OSError as error:
            self.connection_lost(error)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]

    async def close(self, patience: float) -> None:
        """Let what was written go out, but wait for no one who does not read."""
        if self._pipe is None:
            return
        self._pipe.close()
        try:
            async with asyncio.timeout(patience):
                await self._lost.wait()
        except TimeoutError:
            self._pipe.abort()

    # Called by the pipe.

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            log.warning("answers can no longer be written to stdout: %s", exc)
        self._lost.set()
        self._room.set()
        self._on_loss()
