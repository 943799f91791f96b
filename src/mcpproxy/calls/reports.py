"""Which progress reports wait for a client? The newest: a client that reads slowly costs a bounded number of bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

MOST_REPORTS: Final = 100
MOST_BYTES: Final = 1024 * 1024


class Reports:
    """A queue that forgets its oldest reports rather than grow."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._ended = False
        self._news = asyncio.Event()

    def put(self, report: bytes) -> None:
        """Take one report; one that is larger than all that may wait is left out."""
        if len(report) > MOST_BYTES:
            return
        self._waiting.append(report)
        self._bytes += len(report)
        while len(self._waiting) > MOST_REPORTS or self._bytes > MOST_BYTES:
            self._take()
        self._news.set()

    def end(self) -> None:
        """No more will come."""
        self._ended = True
        self._news.set()

    async def get(self) -> bytes | None:
        """The oldest that waits, or None after the last."""
        while not self._waiting:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        return self._take()

    def _take(self) -> bytes:
        report = self._waiting.popleft()
        self._bytes -= len(report)
        return report
