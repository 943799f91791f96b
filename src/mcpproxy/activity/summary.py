"""How much happened, and of what kind? Counted over the last hour, day, week or month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, Table, func, select

from mcpproxy.activity.filters import BadFilter
from mcpproxy.activity.ledger import COUNTED, DAY, HOUR
from mcpproxy.activity.record import now, to_micros
from mcpproxy.activity.store import digested
from mcpproxy.activity.tables import activity, activity_counts, activity_index
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
    with storage.read() as connection:
        rows = list(_counts(connection, end - PERIODS[period], end))
    types, statuses, servers, tools, intents = (Counter[Any]() for _ in COUNTED)
    total = 0
    for type_, status, server, tool, intent, counted in rows:
        count = int(counted)  # PostgreSQL sums to a decimal number
        total += count
        types[type_] += count
        statuses[status] += count
        intents[intent or ""] += count
        servers[server or ""] += count
        if type_ == "tool_call" and tool:
            tools[server or "", tool] += count
    return Summary(
        period=period,
        total=total,
        by_type=_most(types),
        by_status=_most(statuses),
        by_intent=_most(intents),
        by_server=_most(servers),
        top_tools=[ToolCount(server, tool, count) for (server, tool), count in tools.most_common(_TOP)],
    )


def _most(counts: Counter[Any]) -> dict[str, int]:
    return {name: count for name, count in counts.most_common() if name}


def _counts(connection: Connection, start: int, end: int) -> Iterator[Any]:
    """Rows of kind and count. Whole days and hours are counted already; only the rest is looked at row by row."""
    done = digested(connection)
    times = (activity.c.timestamp >= start, activity.c.timestamp < end)
    yield from connection.execute(_grouped(activity, func.count(), *times, activity.c.seq > done))
    for span, first, last in _parts(start, end):
        if span:
            buckets = (activity_counts.c.bucket >= first // span, activity_counts.c.bucket < last // span)
            total = func.sum(activity_counts.c.count)
            yield from connection.execute(_grouped(activity_counts, total, activity_counts.c.span == span, *buckets))
        else:
            rest = (activity_index.c.timestamp >= first, activity_index.c.timestamp < last)
            yield from connection.execute(_grouped(activity_index, func.count(), *rest))


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


def _grouped(table: Table, count: ColumnElement[Any], *where: ColumnElement[bool]) -> Select[Any]:
    kinds = [table.c[name] for name in COUNTED]
    return select(*kinds, count).where(*where).group_by(*kinds)
