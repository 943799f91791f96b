"""What is put on record? One `Record` per thing that happened; a `Stored` one has its place in a chain."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, get_args

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import decode

RecordType = Literal[
    "tool_call",
    "internal_tool_call",
    "policy_decision",
    "server_change",
    "tool_change",
    "config_change",
    "system_start",
    "system_stop",
]
Source = Literal["mcp", "cli", "api", "internal"]
Status = Literal["success", "error", "blocked", "warning", "rejected", "interrupted"]
IntentType = Literal["read", "write", "destructive"]

TYPES: Final[tuple[str, ...]] = get_args(RecordType)
STATUSES: Final[tuple[str, ...]] = get_args(Status)
INTENT_TYPES: Final[tuple[str, ...]] = get_args(IntentType)

NOTHING: Final = Raw(b"null")
"""The payload of a record that has none."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LOW_BITS: Final = 20
_LOW_MASK: Final = (1 << _LOW_BITS) - 1
_PAIRS: Final = [one + two for one in _LETTERS for two in _LETTERS]


class _Ids:
    """ULIDs, each greater than the last. Within a millisecond they count up, and only their last letters are new."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._millisecond = 0
        self._high = 0
        self._low = 0
        self._beginning = ""
        self._random = b""

    def __call__(self) -> str:
        with self._lock:
            millisecond = time.time_ns() // 1_000_000
            if millisecond > self._millisecond:  # and not when the clock goes back
                self._millisecond = millisecond
                # The highest bit is left free, so that counting up within a millisecond cannot overflow.
                random = int.from_bytes(self._some_bytes()) >> 1
                self._begin(random >> _LOW_BITS, random & _LOW_MASK)
            elif self._low == _LOW_MASK:
                self._begin(self._high + 1, 0)
            else:
                self._low += 1
            return self._beginning + _PAIRS[self._low >> 10] + _PAIRS[self._low & 1023]

    def _some_bytes(self) -> bytes:
        """Ten random bytes. They are fetched for many milliseconds at once: each time is a system call."""
        self._random = self._random or os.urandom(1000)
        some, self._random = self._random[:10], self._random[10:]
        return some

    def _begin(self, high: int, low: int) -> None:
        self._high, self._low = high, low
        self._beginning = _encoded(self._millisecond, 50) + _encoded(high, 80 - _LOW_BITS)


def _encoded(number: int, bits: int) -> str:
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(bits - 10, -1, -10)])


new_id: Final = _Ids()
"""A ULID that sorts after every one that this process made before."""


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970, as the database keeps time."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The moment that the database keeps as this number."""
    return _EPOCH + timedelta(microseconds=micros)


class _Common(Struct, frozen=True, kw_only=True):
    """What new and stored records share. The order of the fields is part of the chain: see docs/activity.md."""

    id: str = field(default_factory=new_id)
    type: RecordType
    source: Source
    server_name: str | None = None
    tool_name: str | None = None
    status: Status
    error_message: str | None = None
    arguments: Raw = NOTHING
    """JSON as it came; masked and cut on its way into the database."""
    response: Raw = NOTHING
    duration_ms: float | None = None
    timestamp: datetime = field(default_factory=now)
    """When it began; with `duration_ms`, when it ended."""
    request_id: str | None = None
    session_id: str | None = None
    client_name: str | None = None


class Record(_Common, frozen=True, kw_only=True):
    """One thing that happened, as the rest of the house hands it over."""

    metadata: dict[str, Any] = field(default_factory=dict)
    """`intent`, `tool_variant`, `warnings`, `output_validation`, and what else belongs to the type."""


class Linked(_Common, frozen=True, kw_only=True):
    """A record as it goes into the database, with its place in its writer's chain. Its JSON is what is hashed."""

    metadata: Raw
    """Raw, since what was hashed must not be decoded and encoded again."""
    writer: str
    position: int


class Stored(Linked, frozen=True, kw_only=True):
    """A record as it is read back and exported, with the hashes that bind it to its predecessor."""

    prev_hash: str
    hash: str


def decoded(json_text: Raw | str) -> Any:
    """The value of a stored payload or of stored metadata, lone surrogates and large numbers included."""
    try:
        return decode(json_text)
    except (DecodeError, RecursionError):
        return json.loads(json_text if isinstance(json_text, str) else bytes(json_text))
