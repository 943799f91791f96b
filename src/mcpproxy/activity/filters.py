"""Which records are asked for? Texts from a URL or a command line in, a checked filter out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from mcpproxy.activity.record import INTENT_TYPES, STATUSES, TYPES, now

DEFAULT_LIMIT: Final = 50
MOST: Final = 1000
_LONGEST_QUERY: Final = 1000
_AGE: Final = re.compile(r"(\d{1,6})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIMES: Final = "an RFC 3339 time such as 2026-01-15T10:30:00Z, a date, or an age such as 30m, 24h or 7d"


class BadFilter(Exception):
    """A filter that cannot be meant: which one, what was given, and what may be."""

    def __init__(self, field: str, value: object, allowed: tuple[str, ...] | str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        choices = allowed if isinstance(allowed, str) else "one of " + ", ".join(allowed)
        super().__init__(f"{field}: {value!r} is not allowed; give {choices}")


class Filter(Struct, frozen=True, kw_only=True):
    """What a record must be; None where it may be anything."""

    type: str | None = None
    status: str | None = None
    server: str | None = None
    tool: str | None = None
    """A bare name, or `server:tool`."""
    intent_type: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    start_time: datetime | None = None
    """That moment and later."""
    end_time: datetime | None = None
    """Before that moment."""
    q: str | None = None
    """Words that must all be in the tool's name, the error or the reason."""

    def names(self) -> dict[str, str]:
        """The columns that must have one value each."""
        wanted = {
            "type": self.type,
            "status": self.status,
            "server_name": self.server,
            "tool_name": self.tool,
            "intent_type": self.intent_type,
            "request_id": self.request_id,
            "session_id": self.session_id,
        }
        if self.tool and ":" in self.tool:
            server, _, tool = self.tool.partition(":")
            # Two different servers are asked for: that of no record.
            wanted["server_name"] = server if self.server in {None, server} else ""
            wanted["tool_name"] = tool
        return {column: value for column, value in wanted.items() if value is not None}


_CHOICES: Final = {"type": TYPES, "status": STATUSES, "intent_type": INTENT_TYPES}


def parse_filter(given: Mapping[str, str | None]) -> Filter:
    """The filter that these texts mean; an empty text is no filter."""
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name not in Filter.__struct_fields__:
            raise BadFilter("filter", name, Filter.__struct_fields__)
        if not value:
            continue
        if value not in _CHOICES.get(name, (value,)):
            raise BadFilter(name, value, _CHOICES[name])
        fields[name] = parse_moment(name, value) if name.endswith("_time") else value
    if len(fields.get("q", "")) > _LONGEST_QUERY:
        raise BadFilter("q", f"{fields['q'][:20]}…", f"at most {_LONGEST_QUERY} characters")
    return Filter(**fields)


def parse_moment(field: str, value: str) -> datetime:
    """A time, a date, or an age counted back from now. What names no zone is UTC."""
    try:
        if age := _AGE.fullmatch(value):
            return now() - timedelta(**{_UNITS[age[2]]: int(age[1])})
        if len(value) == len("2026-01-15"):
            value += "T00:00:00Z"
        moment = msgspec.convert(value, datetime)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError) as error:
        raise BadFilter(field, value, _TIMES) from error


def parse_limit(value: str | int | None) -> int:
    """How many records one page may have."""
    if value is None or value == "":
        return DEFAULT_LIMIT
    try:
        limit = int(value)
    except ValueError:
        limit = 0
    if not 1 <= limit <= MOST:
        raise BadFilter("limit", value, f"a whole number from 1 to {MOST}")
    return limit
