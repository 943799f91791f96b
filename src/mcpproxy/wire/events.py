"""Which events does this stream of server-sent events hold? Bytes in, events out, within a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MAX_JUNK_BYTES = 16 * 1024 * 1024
"""How much may come between two messages that are of use to somebody, before the sender is stopped."""

TEDIOUS_BYTES = 1024 * 1024
"""After this much of it the sender is read slowly."""

_TEDIOUS_LINES = 4096
# What a line or an event that is of no use costs beside its bytes.
_JUNK_LINE_COST = 256
_JUNK_EVENT_COST = 512
_MAX_JUNK_EVENT = 64 * 1024
_LINE_COST = 64  # of a line of data beside its bytes: millions of empty ones are work too
_KEPT_HEAD = 1024
_KEPT_TAIL = 512
_MAX_ID = 4096  # it goes back in a header
_MAX_RETRY_DIGITS = 9
_LONGEST_RETRY = 60.0


class Event(NamedTuple):
    """One server-sent event; `data` is raw, and only its two ends where the event was too large."""

    name: str
    data: bytes
    cut: bool


class EventParser:
    """Cuts a stream into events without ever holding more than one within the limit.

    The rest of a larger one is thrown away, so that the stream, and all who share it, can go on after it.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self.last_id: str | None = None
        """Where to resume: the id of the last event that came whole."""
        self.retry: float | None = None
        self.overflowing = False
        """The event under way is over the limit."""
        self.junk = 0
        """How much has come since whoever takes the events set it back to nothing, and what it cost to read."""
        self._limit = limit
        self.restart()

    @property
    def flooding(self) -> bool:
        """Whether too much has come that was of use to nobody."""
        return self.junk > MAX_JUNK_BYTES

    @property
    def tedious(self) -> bool:
        """Whether it takes so much work that there is no hurry with the rest."""
        return self.junk > TEDIOUS_BYTES or self._lines > _TEDIOUS_LINES

    def restart(self) -> None:
        """Begin with a new stream; what the old one left unfinished will come again or never."""
        self._line = bytearray()
        self._data = bytearray()
        self._lines = 0
        self._name = "message"
        self._id = self.last_id
        self._after_return = False
        self._first = True
        self.overflowing = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        events: list[Event] = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._take(chunk[start:end])
            if (event := self._end_line()) is not None:
                events.append(event)
            start = end + 1
            if self.flooding:
                return events  # whoever takes them will have no more of it
        self._take(chunk[start:])
        return events

    def _take(self, piece: bytes) -> None:
        self._line += piece
        if len(self._data) + len(self._line) + _LINE_COST * self._lines > self._limit():
            self.overflowing = True
        if self.overflowing:
            for buffer in (self._line, self._data):
                del buffer[_KEPT_HEAD : max(len(buffer) - _KEPT_TAIL, _KEPT_HEAD)]

    def _end_line(self) -> Event | None:
        line, self._line = bytes(self._line), bytearray()
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._finish()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":  # bounded by the limit
            self._data += value + b"\n"
            self._lines += 1
            return None
        self.junk += len(line) + _JUNK_LINE_COST
        if name == b"event":
            self._name = value.decode(errors="replace")
        elif name == b"id" and len(value) <= _MAX_ID and b"\0" not in value:
            self._id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self.retry = min(int(value) / 1000, _LONGEST_RETRY)
        return None

    def _finish(self) -> Event | None:
        event = Event(self._name, bytes(self._data[:-1]), self.overflowing)
        self._name, self._data, self._lines, self.overflowing = "message", bytearray(), 0, False
        self.last_id = self._id
        self.junk += min(len(event.data), _MAX_JUNK_EVENT) + (_JUNK_EVENT_COST if event.data else _JUNK_LINE_COST)
        return event if event.data else None
