"""How much is read at once? Little, where it would take long: a flood of tiny lines must leave others their turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

_LINES_AT_ONCE = 256
_PIECE = 1024


def pieces(chunk: bytes) -> Sequence[bytes]:
    """A chunk in one piece, or in several where it holds many lines."""
    few = len(chunk) <= _PIECE or (chunk.count(b"\n") <= _LINES_AT_ONCE and chunk.count(b"\r") <= _LINES_AT_ONCE)
    return (chunk,) if few else [chunk[start : start + _PIECE] for start in range(0, len(chunk), _PIECE)]


class Output(asyncio.Protocol):
    """Hands on what a child prints: at once as a rule, and of a flood one piece in each turn of the event loop."""

    def __init__(self, take: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self._take = take
        self._lost = lost
        self._waiting: deque[bytes] = deque()

    @property
    def behind(self) -> bool:
        """Whether something has been read that is not handed on yet."""
        return bool(self._waiting)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pipe = cast(asyncio.ReadTransport, transport)  # uvloop's have no part in that class

    def data_received(self, data: bytes) -> None:
        first, *rest = pieces(data)
        if self._waiting:
            rest = [first, *rest]
        else:
            self._take(first)
        if rest and not self._waiting:
            self._pipe.pause_reading()
            asyncio.get_running_loop().call_soon(self._go_on)
        self._waiting.extend(rest)

    def _go_on(self) -> None:
        if self._pipe.is_closing():
            self._waiting.clear()
            return
        self._take(self._waiting.popleft())
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self._pipe.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.clear()
        self._lost()
