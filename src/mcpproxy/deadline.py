"""Has it taken too long? `asyncio.timeout` for the hot path, where the loop is at hand and need not be looked up."""

from __future__ import annotations

import asyncio
from typing import Any


class Deadline:
    """Ends what its block waits for with TimeoutError, after so many seconds or not at all.

    Like `asyncio.timeout`, which asks four times for the running loop; on Python 3.11 each time is a system call.
    """

    __slots__ = ("_cancelling", "_expired", "_handle", "_loop", "_seconds", "_task")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float | None) -> None:
        self._loop = loop
        self._seconds = seconds
        self._expired = False

    def __enter__(self) -> Deadline:
        task = asyncio.current_task(self._loop)
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancelling = task.cancelling()
        self._handle = None if self._seconds is None else self._loop.call_later(self._seconds, self._expire)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._handle is not None:
            self._handle.cancel()
        # Where somebody else has cancelled the task too, that is the news.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def move(self, when: float) -> None:
        """Expire at another moment, by the loop's clock."""
        if self._handle is not None and not self._expired:
            self._handle.cancel()
            self._handle = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()
