"""How much is read at once? Little, where it would take long: a flood of tiny lines must leave others their turn."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

BREATH = 0.002
"""Seconds between two turns for a sender that has long been of no use to anybody."""
_LINES_AT_ONCE = 128
_SOME_LINES = re.compile(rb"(?:[^\r\n]*+[\r\n]){1,64}+|.+", re.DOTALL)


def pieces(chunk: bytes) -> Sequence[bytes]:
    """A chunk in one piece, or in several where it holds many lines."""
    if _has_few(chunk, b"\n") and _has_few(chunk, b"\r"):
        return (chunk,)
    return _SOME_LINES.findall(chunk)


def _has_few(chunk: bytes, end: bytes) -> bool:
    """Whether no more than so many lines end in it: looking for each is much quicker than counting all bytes."""
    place = -1
    for _ in range(_LINES_AT_ONCE + 1):
        place = chunk.find(end, place + 1)
        if place < 0:
            return True
    return False


class Output(asyncio.Protocol):
    """Hands on what a child prints: at once as a rule, and of a flood a few lines in each turn of the event loop."""

    def __init__(self, take: Callable[[bytes], None], lost: Callable[[], None], slow: Callable[[], bool]) -> None:
        self._take = take
        self._lost = lost
        self._slow = slow
        """Whether there is no hurry with the rest."""
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
            self._plan()
        self._waiting.extend(rest)

    def _plan(self) -> None:
        loop = asyncio.get_running_loop()
        if self._slow():
            loop.call_later(BREATH, self._go_on)
        else:
            loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._pipe.is_closing():
            self._waiting.clear()
            return
        self._take(self._waiting.popleft())
        if self._waiting:
            self._plan()
        else:
            self._pipe.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting.clear()
        self._lost()
