"""How much happened, and of what kind? Counted over the last hour, day, week or month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, func, select

from mcpproxy.activity.filters import BadFilter
from mcpproxy.activity.ledger import COUNTED, DAY, HOUR
from mcpproxy.activity.record import now, to_micros
from mcpproxy.activity.store import digested
from mcpproxy.activity.tables import activity, activity_index, activity_tallies
from mcpproxy.storage.engine import Storage

PERIODS: Final = {"1h": HOUR, "24h": 24 * HOUR, "7d": 7 * DAY, "30d": 30 * DAY}
_TOP: Final = 10


class ToolCount(Struct, frozen=True):
    """How often one tool was called."""

    server: str
    tool: str
    count: int


class Summary(Struct, frozen=True, kw_only=True):
    """The counts of one period; each map only has what there was, the most frequent first."""

    period: str
    total: int
    by_type: dict[str, int]
    by_status: dict[str, int]
    by_intent: dict[str, int]
    by_server: dict[str, int]
    top_tools: list[ToolCount]
    """Of the calls to tools of servers."""


def summarize(storage: Storage, period: str = "24h", at: datetime | None = None) -> Summary:
    """What happened in the period that ends now."""
    if period not in PERIODS:
        raise BadFilter("period", period, tuple(PERIODS))
    end = to_micros(at or now())
    found = _Counts()
    with storage.read() as connection:
        found.add(connection, end - PERIODS[period], end)
    return Summary(
        period=period,
        total=found.by["type"].total(),
        by_type=dict(found.by["type"].most_common()),
        by_status=dict(found.by["status"].most_common()),
        by_intent=dict(found.by["intent"].most_common()),
        by_server=dict(found.by["server"].most_common()),
        top_tools=[_tool_count(name, count) for name, count in found.by["tool"].most_common(_TOP)],
    )


def _tool_count(name: str, count: int) -> ToolCount:
    server, _, tool = name.partition(":")
    return ToolCount(server, tool, count)


class _Counts:
    """Counts by dimension and value, as `activity_tallies` has them."""

    def __init__(self) -> None:
        self.by: dict[str, Counter[str]] = {name: Counter() for name in ("type", "status", "intent", "server", "tool")}

    def add(self, connection: Connection, start: int, end: int) -> None:
        """Count a period. Whole days and hours are tallied already; only the rest is looked at row by row."""
        newer = activity.c.seq > digested(connection)
        self._add_rows(connection, activity, start, end, newer)
        for span, first, last in _parts(start, end):
            if span:
                self._add_tallies(connection, span, first // span, last // span)
            else:
                self._add_rows(connection, activity_index, first, last)

    def _add_tallies(self, connection: Connection, span: int, first: int, last: int) -> None:
        kind = (activity_tallies.c.dimension, activity_tallies.c.value)
        inside = (activity_tallies.c.span == span, activity_tallies.c.bucket >= first, activity_tallies.c.bucket < last)
        counts = select(*kind, func.sum(activity_tallies.c.count)).where(*inside).group_by(*kind)
        for dimension, value, count in connection.execute(counts):
            self.by[dimension][value] += int(count)  # PostgreSQL sums to a decimal number

    def _add_rows(
        self, connection: Connection, table: Table, start: int, end: int, *where: ColumnElement[bool]
    ) -> None:
        kinds = [table.c[name] for name in COUNTED]
        inside = (table.c.timestamp >= start, table.c.timestamp < end)
        counts = select(*kinds, func.count()).where(*inside, *where).group_by(*kinds)
        rows: Iterable[Any] = connection.execute(counts)
        for type_, status, server, tool, intent, count in rows:
            self.by["type"][type_] += count
            self.by["status"][status] += count
            if intent:
                self.by["intent"][intent] += count
            if server:
                self.by["server"][server] += count
            if tool and type_ == "tool_call":
                self.by["tool"][f"{server or ''}:{tool}"] += count


def _parts(start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The period in pieces: whole days, the whole hours around them, and what is left at both ends (span 0)."""
    hours = -(-start // HOUR) * HOUR, end // HOUR * HOUR
    if hours[0] >= hours[1]:
        yield 0, start, end
        return
    days = -(-hours[0] // DAY) * DAY, hours[1] // DAY * DAY
    pieces = [(0, start, hours[0]), (HOUR, hours[0], hours[1]), (0, hours[1], end)]
    if days[0] < days[1]:
        pieces[1:2] = [(HOUR, hours[0], days[0]), (DAY, *days), (HOUR, days[1], hours[1])]
    yield from (piece for piece in pieces if piece[1] < piece[2])
