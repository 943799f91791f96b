"""What happened, newest first? Pages of records that stay in place while new ones arrive."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, Label, Select, and_, func, or_, select

from mcpproxy.activity.filters import DEFAULT_LIMIT, BadFilter, Filter
from mcpproxy.activity.ledger import COUNTED
from mcpproxy.activity.lookup import Lookup, newer_places
from mcpproxy.activity.record import Stored
from mcpproxy.activity.store import digested, digested_and_newest, records, select_records, stored
from mcpproxy.activity.tables import activity, activity_counts, activity_index
from mcpproxy.storage.engine import Storage

_CURSOR: Final = re.compile(r"(\d{1,18})-(\d{1,18})")


class Page(Struct, frozen=True, kw_only=True):
    """Some records, how many there are in all, and where the next page begins."""

    activities: list[Stored]
    total: int
    total_exact: bool
    """False where there are more than `total` says."""
    next_cursor: str | None


class _Place(Struct, frozen=True):
    """Where a record stands in the list."""

    timestamp: int
    seq: int


def list_records(storage: Storage, asked: Filter, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page:
    """One page of the records that a filter lets through.

    The last that began comes first; with `q`, the last that was recorded.
    """
    before = _parse_cursor(cursor)
    with storage.read() as connection:
        done, end = digested_and_newest(connection)
        lookup = Lookup(connection, asked)
        sources = [lookup.places()]
        if done < end:
            sources.append(newer_places(asked, done))
        places = _first(connection, sources, before, limit + 1, by_commit=asked.q is not None)
        found = records(connection, [place.seq for place in places[:limit]])
        if before is None and len(places) <= limit:
            total, exact = len(places), True
        else:
            total, exact = _total(connection, asked, lookup)
            if done < end:
                total += _count(connection, newer_places(asked, done))
    last = places[limit - 1] if len(places) > limit else None
    return Page(
        # Retention may have taken a record between the two looks.
        activities=[found[place.seq] for place in places[:limit] if place.seq in found],
        total=total,
        total_exact=exact,
        next_cursor=f"{last.timestamp}-{last.seq}" if last else None,
    )


def get_record(storage: Storage, id_: str) -> Stored | None:
    """The record with this id."""
    with storage.read() as connection:
        seq = connection.execute(select(func.max(activity_index.c.seq)).where(activity_index.c.id == id_)).scalar()
        found = activity.c.seq == seq
        if seq is None:
            found = and_(activity.c.seq > digested(connection), activity.c.id == id_)
        row = connection.execute(select_records().where(found).order_by(activity.c.seq.desc()).limit(1)).first()
    return stored(row) if row is not None else None


def _parse_cursor(cursor: str | None) -> _Place | None:
    if not cursor:
        return None
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise BadFilter("cursor", cursor, "the `next_cursor` of the page before")
    return _Place(int(parts[1]), int(parts[2]))


def _first(
    connection: Connection, sources: list[Select[Any]], before: _Place | None, limit: int, *, by_commit: bool
) -> list[_Place]:
    """The first places after a given one, of all sources together."""
    pages = [_after(places, before, limit, by_commit=by_commit) for places in sources]
    places = [_Place(*row) for page in pages for row in connection.execute(page)]
    places.sort(key=lambda place: (0 if by_commit else place.timestamp, place.seq), reverse=True)
    return places[:limit]


def _after(places: Select[Any], before: _Place | None, limit: int, *, by_commit: bool) -> Select[Any]:
    timestamp, seq = (column.element if isinstance(column, Label) else column for column in places.selected_columns)
    if by_commit:
        if before is not None:
            places = places.where(seq < before.seq)
        return places.order_by(seq.desc()).limit(limit)
    if before is not None:
        # Said twice, since only the first half can use an index.
        earlier = or_(timestamp < before.timestamp, seq < before.seq)
        places = places.where(timestamp <= before.timestamp, earlier)
    return places.order_by(timestamp.desc(), seq.desc()).limit(limit)


def _total(connection: Connection, asked: Filter, lookup: Lookup) -> tuple[int, bool]:
    """How many records are indexed, and whether that is all of them."""
    names = asked.names()
    by_name_only = asked.q is None and asked.start_time is None and asked.end_time is None
    if not by_name_only or not names.keys() <= set(COUNTED):
        return lookup.count()
    kinds = [activity_counts.c[name] == value for name, value in names.items()]
    sums = select(func.coalesce(func.sum(activity_counts.c.count), 0)).where(*kinds)
    return int(connection.execute(sums).scalar_one()), True


def _count(connection: Connection, rows: Select[Any]) -> int:
    return int(connection.execute(select(func.count()).select_from(rows.subquery())).scalar_one())
