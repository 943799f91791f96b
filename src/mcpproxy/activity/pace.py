"""How busy was it, and what was slow? The calls of the last day over time, and the tools that take longest."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import BigInteger, Connection, Select, Table, func, literal, select

from mcpproxy.activity.record import from_micros, now, to_micros
from mcpproxy.activity.store import digested
from mcpproxy.activity.tables import activity, activity_index
from mcpproxy.storage.engine import Storage

DAY: Final = timedelta(hours=24)
STEP: Final = timedelta(minutes=10)
_LATE: Final = timedelta(minutes=40)
_WIDTH: Final = STEP // timedelta(microseconds=1)
MOST_CALLS: Final = 2000
"""So many of the last calls tell how fast the tools are: their rows are read whole, and some are long."""
_SLOWEST: Final = 5


class Pace(Struct, frozen=True, kw_only=True):
    """The calls of a period in equal steps, by declared intent; the last step is still going on."""

    start: datetime
    step: timedelta
    by_intent: dict[str, list[int]]
    """For each intent one count per step; `""` where none was made out."""
    by_status: dict[str, int]

    @property
    def total(self) -> int:
        """How many calls there were."""
        return sum(self.by_status.values())


class Slow(Struct, frozen=True, kw_only=True):
    """How long one tool takes, in milliseconds."""

    server: str
    tool: str
    calls: int
    median: float
    p95: float


class Pacer:
    """Counts the calls of the last day. Steps that are long over are counted once. Use it in threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._counts: dict[int, Counter[tuple[str, str]]] = {}
        """By step, what is known; in it, by intent and status."""
        self._counting = threading.Lock()

    def look(self, at: datetime | None = None) -> Pace:
        """The calls of the day that ends now."""
        end = -(-to_micros(at or now()) // _WIDTH)
        start = end - DAY // STEP
        with self._counting:
            # A call stands where it began, and may be recorded much later.
            first = max(start, max(self._counts, default=start) - _LATE // STEP)
            self._counts = {step: found for step, found in self._counts.items() if start <= step < first}
            self._counts |= self._count(first, end)
            known = dict(self._counts)
        by_intent: dict[str, list[int]] = defaultdict(lambda: [0] * (end - start))
        by_status: Counter[str] = Counter()
        for step, found in known.items():
            for (intent, status), count in found.items():
                by_intent[intent][step - start] += count
                by_status[status] += count
        return Pace(start=from_micros(start * _WIDTH), step=STEP, by_intent=dict(by_intent), by_status=dict(by_status))

    def _count(self, first: int, end: int) -> dict[int, Counter[tuple[str, str]]]:
        counts: dict[int, Counter[tuple[str, str]]] = {}
        with self._storage.read() as connection:
            for step, intent, status, count in _counted(connection, first * _WIDTH, end * _WIDTH):
                counts.setdefault(int(step), Counter())[intent or "", status] += int(count)
        return counts


def _counted(connection: Connection, start: int, end: int) -> Iterator[Any]:
    newer = activity.c.seq > digested(connection)
    yield from connection.execute(_per_step(activity_index, start, end))
    yield from connection.execute(_per_step(activity, start, end).where(newer))


def _per_step(table: Table, start: int, end: int) -> Select[Any]:
    # A plain slash: between whole numbers it rounds down in both databases.
    place = table.c.timestamp.op("/", return_type=BigInteger())(literal(_WIDTH, BigInteger()))
    kinds = (place.label("place"), table.c.intent_type, table.c.status)
    during = (table.c.type == "tool_call", table.c.timestamp >= start, table.c.timestamp < end)
    return select(*kinds, func.count()).where(*during).group_by(*kinds)


def slowest(storage: Storage, at: datetime | None = None, *, period: timedelta = DAY) -> list[Slow]:
    """The tools whose calls took longest lately, slowest first. Use it in a thread."""
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    start = to_micros((at or now()) - period)
    with storage.read() as connection:
        recent = (
            select(activity_index.c.seq)
            .where(activity_index.c.type == "tool_call", activity_index.c.timestamp >= start)
            .order_by(activity_index.c.timestamp.desc())
            .limit(MOST_CALLS)
        )
        known = activity.c.seq.in_(recent.scalar_subquery())
        newer = (activity.c.seq > digested(connection), activity.c.type == "tool_call", activity.c.timestamp >= start)
        for where in ((known,), newer):
            for row in connection.execute(_durations().where(*where).limit(MOST_CALLS)):
                took[row.server_name, row.tool_name].append(row.duration_ms)
    found = [_slow(server, tool, sorted(times)) for (server, tool), times in took.items()]
    return sorted(found, key=lambda slow: -slow.p95)[:_SLOWEST]


def _durations() -> Select[Any]:
    # What was refused never reached the tool, and says nothing about its speed.
    reached = (activity.c.status.in_(("success", "error")), activity.c.duration_ms.is_not(None))
    named = (activity.c.server_name.is_not(None), activity.c.tool_name.is_not(None))
    return select(activity.c.server_name, activity.c.tool_name, activity.c.duration_ms).where(*reached, *named)


def _slow(server: str, tool: str, times: list[float]) -> Slow:
    last = len(times) - 1
    return Slow(
        server=server, tool=tool, calls=len(times), median=times[last // 2], p95=times[min(last, round(last * 0.95))]
    )
