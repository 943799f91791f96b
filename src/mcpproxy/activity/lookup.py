"""By which index is a filter answered? Never by looking at every record.

What is not indexed yet stands at the end of the ledger, and is looked at row by row: see tables.py.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    column,
    false,
    func,
    literal_column,
    select,
    table,
    text,
)

from mcpproxy.activity.filters import Filter
from mcpproxy.activity.store import conditions, has_words, in_ledger
from mcpproxy.activity.tables import activity, activity_index
from mcpproxy.activity.words import fts5_match, query_words, tsquery

# So many rows are looked at one by one sooner than a second index is asked.
_FEW: Final = 1000

_search = table("activity_search", column("rowid"))


def newer_places(asked: Filter, digested: int) -> Select[Any]:
    """Timestamp and number of the matching rows that are not indexed yet."""
    place = select(activity.c.timestamp, activity.c.seq.label("seq"))
    return place.where(activity.c.seq > digested, *in_ledger(asked))


def indexed_places(connection: Connection, asked: Filter) -> Select[Any]:
    """Timestamp and number of the matching rows in the index."""
    place = select(activity_index.c.timestamp, activity_index.c.seq.label("seq"))
    words = query_words(asked.q or "")
    if asked.q is not None and not words:
        return place.where(false())
    if connection.dialect.name != "sqlite":
        # PostgreSQL keeps statistics of the values and chooses well by itself.
        found = place.where(*conditions(asked, activity_index.c.__getitem__))
        return _with_lexemes(found, words) if words else found
    best, few = _best_index(connection, asked)
    if not words:
        return place.where(*_by(best, asked))
    if few:
        found = place.join(activity, activity.c.seq == activity_index.c.seq)
        return found.where(*_by(best, asked), *has_words(asked.q))
    # The text search gives its rows in the order of their numbers, if asked for those.
    place = select(activity_index.c.timestamp, _search.c.rowid.label("seq")).select_from(_search)
    matches = text("activity_search MATCH :words").bindparams(bindparam("words", fts5_match(words)))
    place = place.join(activity_index, _search.c.rowid == activity_index.c.seq)
    return place.where(matches, *_by(None, asked))


def _with_lexemes(place: Select[Any], words: list[tuple[str, bool]]) -> Select[Any]:
    matches = text("array_to_tsvector(string_to_array(activity.search, ' ')) @@ CAST(:words AS tsquery)")
    matches = matches.bindparams(bindparam("words", tsquery(words)))
    return place.join(activity, activity.c.seq == activity_index.c.seq).where(matches)


def _best_index(connection: Connection, asked: Filter) -> tuple[str, bool]:
    """The column whose value the fewest rows have, and whether they are few: SQLite would have to guess."""
    names = asked.names()
    if not names:
        return "timestamp", False
    if len(names) == 1 and asked.q is None:
        return next(iter(names)), False
    rows = {name: _count_few(connection, activity_index.c[name] == value) for name, value in names.items()}
    best = min(rows, key=lambda name: rows[name])
    return best, rows[best] < _FEW


def _count_few(connection: Connection, condition: ColumnElement[bool]) -> int:
    some = select(literal_column("1")).select_from(activity_index).where(condition).limit(_FEW).subquery()
    return int(connection.execute(select(func.count()).select_from(some)).scalar_one())


def _by(best: str | None, asked: Filter) -> list[ColumnElement[bool]]:
    """The filter for SQLite, which uses no index for a column behind a plus sign: only the best one's is left."""

    def column(name: str) -> ColumnElement[Any]:
        if best is not None and name in {best, "timestamp"}:
            return activity_index.c[name]
        return literal_column(f"+activity_index.{name}")

    return conditions(asked, column)
