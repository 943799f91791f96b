"""Where does one message of a stream end? Bytes in, lines out to the channel, within a bound on each and on junk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from mcpproxy.wire import envelope
from mcpproxy.wire.channel import Channel
from mcpproxy.wire.errors import AnswerTooLarge, InvalidAnswer
from mcpproxy.wire.events import MAX_JUNK_BYTES, TEDIOUS_BYTES

MAX_LINE_BYTES = 1024 * 1024 * 1024
"""How long an answer over the limit may be while it is thrown away, before the sender is stopped."""

# What a line costs us beside its bytes, however short it is.
_TEXT_COST = 256
_USELESS_COST = 512
_MAX_OTHER_LINE = 64 * 1024
_MAX_REMARK = 2000
_ENDS = 512


class LineReader:
    """Cuts a stream into lines and hands each to the channel, without ever holding more than one within the limit."""

    def __init__(self, channel: Channel, on_other: Callable[[bytes], None]) -> None:
        self._channel = channel
        self._on_other = on_other
        self._line = bytearray()
        self._junk = 0
        # Of a line that is being thrown away: how much of it has come, and its two ends.
        self._skipped = 0
        self._head = b""
        self._tail = b""

    @property
    def tedious(self) -> bool:
        """Whether so much has come that is of no use that there is no hurry with the rest."""
        return self._junk > TEDIOUS_BYTES

    def feed(self, data: bytes) -> str | None:
        """Deliver every whole line; returns what is wrong once the sender has gone too far."""
        start, short = 0, min(self._channel.max_result_bytes, _MAX_OTHER_LINE)
        while (end := data.find(b"\n", start)) >= 0:
            piece = data[start:end]
            if self._line or self._skipped or len(piece) > short:
                self._add(piece)
                self._end_line()
            else:
                self._take(piece)
            start = end + 1
            if self._junk > MAX_JUNK_BYTES:
                break  # tiny lines cost the most of our time: not one more
        else:
            self._add(data[start:])
        return self._excess()

    def _excess(self) -> str | None:
        if self._junk + (0 if _like_json(self._head) else self._skipped) > MAX_JUNK_BYTES:
            return f"it printed more than {MAX_JUNK_BYTES} bytes to stdout that are no answer to anything"
        if self._skipped > MAX_LINE_BYTES:
            return f"it printed a line of more than {MAX_LINE_BYTES} bytes to stdout"
        return None

    def finish(self) -> None:
        """The stream ended: a last line without a newline counts if it is whole; half of one is worth nothing."""
        line, self._line, self._skipped = self._line.strip(), bytearray(), 0
        if not _like_json(line):
            self._other(line)
            return
        with contextlib.suppress(InvalidAnswer):
            envelope.decode(line)
            self._channel.deliver(line)

    def _add(self, piece: bytes) -> None:
        if not piece:
            return
        if self._skipped:
            self._skipped += len(piece)
            self._tail = (self._tail + piece)[-_ENDS:]
            return
        self._line += piece
        if len(self._line) > (self._channel.max_result_bytes if _like_json(self._line) else _MAX_OTHER_LINE):
            self._skipped = len(self._line)
            self._head, self._tail = bytes(self._line[:_MAX_REMARK]), bytes(self._line[-_ENDS:])
            self._line = bytearray()
            if _like_json(self._head):
                self._fail_oversized(b"")  # whoever waits for it need not wait for the rest

    def _end_line(self) -> None:
        if self._skipped:
            self._end_skipped()
            return
        line, self._line = self._line, bytearray()
        self._take(line)

    def _take(self, line: bytes | bytearray) -> None:
        if line[:1].isspace() or line[-1:].isspace():  # a long one is copied only where it must be
            line = line.strip()
        if not _like_json(line):
            self._other(line)
        elif self._channel.deliver(line):
            self._junk = 0
        else:
            # A large answer given twice is a nuisance; only many of them are a flood.
            self._junk += min(len(line), _MAX_OTHER_LINE) + _USELESS_COST

    def _end_skipped(self) -> None:
        if not _like_json(self._head):
            self._junk += self._skipped
            self._other(self._head)
        else:
            self._junk += _MAX_OTHER_LINE
            self._fail_oversized(self._tail)
        self._skipped, self._head, self._tail = 0, b"", b""

    def _fail_oversized(self, tail: bytes) -> None:
        request_id = envelope.salvage_id(self._head[:_ENDS], tail)
        if self._channel.fail_broken(request_id, AnswerTooLarge(self._channel.max_result_bytes)):
            self._junk = 0

    def _other(self, line: bytes | bytearray) -> None:
        """Text on stdout is no message, but it often says why a server does not work."""
        self._junk += len(line) + _TEXT_COST
        if line:
            self._on_other(bytes(line[:_MAX_REMARK]) + b"\n")


def _like_json(line: bytes | bytearray) -> bool:
    return line[:64].lstrip()[:1] in (b"{", b"[")
