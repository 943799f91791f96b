"""Which events does this stream of server-sent events hold? Bytes in, events out, within a bound."""

from __future__ import annotations

from typing import NamedTuple

from mcpproxy.wire.errors import AnswerTooLarge


class Event(NamedTuple):
    """One server-sent event; `data` is raw."""

    name: str
    data: bytes
    id: str | None


class EventParser:
    """Cuts a stream into events without ever holding more than one within the limit."""

    def __init__(self, limit: int) -> None:
        self.last_id: str | None = None
        self.retry: float | None = None
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._unfinished = 0
        self._name = "message"
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        events: list[Event] = []
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = b"".join((*self._parts, line)) if self._parts else line
            self._parts.clear()
            self._unfinished = 0
            if whole:
                self._field(whole)
            elif (event := self._finish()) is not None:
                events.append(event)
        if rest:
            self._parts.append(rest)
            self._unfinished += len(rest)
        if self._size + self._unfinished > self._limit:
            raise AnswerTooLarge(self._limit)
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
        elif name == b"event":
            self._name = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value:
            self.last_id = value.decode(errors="replace")
        elif name == b"retry" and value.isdigit():
            self.retry = min(int(value) / 1000, 60)

    def _finish(self) -> Event | None:
        name, data, self._name, self._data = self._name, self._data, "message", []
        self._size = 0
        return Event(name, b"\n".join(data), self.last_id) if data else None
