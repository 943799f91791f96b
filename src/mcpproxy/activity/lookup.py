"""By which index is a filter answered? Never by looking at every record.

What is not indexed yet stands at the end of the ledger, and is looked at row by row: see tables.py.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
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

MOST_COUNTED: Final = 10_000
"""So many entries of an index are counted for a total."""
MOST_CHECKED: Final = 1000
"""So many rows are looked at for a total, where no index alone answers the filter, and so many matches of a text."""

# So many rows are looked at one by one sooner than the text search is asked.
_FEW: Final = 2000
# Of two columns that look alike, the one whose values tend to be rarer.
_RAREST_FIRST: Final = (
    "request_id",
    "session_id",
    "tool_name",
    "server_name",
    "status",
    "intent_type",
    "type",
)

_search = table("activity_search", column("rowid"))


def newer_places(asked: Filter, digested: int) -> Select[Any]:
    """Timestamp and number of the matching rows that are not indexed yet."""
    place = select(activity.c.timestamp, activity.c.seq.label("seq"))
    return place.where(activity.c.seq > digested, *in_ledger(asked))


class Lookup:
    """How one filter is answered out of the index."""

    def __init__(self, connection: Connection, asked: Filter) -> None:
        self._connection = connection
        self._asked = asked
        self._sqlite = connection.dialect.name == "sqlite"
        self._words = query_words(asked.q or "")
        self._best, self._few = self._best_index() if self._sqlite else ("timestamp", False)

    def places(self) -> Select[Any]:
        """Timestamp and number of the matching rows."""
        place = select(activity_index.c.timestamp, activity_index.c.seq.label("seq"))
        if self._asked.q is not None and not self._words:
            return place.where(false())
        if not self._sqlite:
            # PostgreSQL keeps statistics of the values and chooses well by itself.
            return self._with_lexemes(place.where(*conditions(self._asked, activity_index.c.__getitem__)))
        if not self._words:
            return place.where(*self._by(self._best))
        if self._few:
            found = place.join(activity, activity.c.seq == activity_index.c.seq)
            return found.where(*self._by(self._best), *has_words(self._asked.q))
        # The text search gives its rows in the order of their numbers, if asked for those.
        place = select(activity_index.c.timestamp, _search.c.rowid.label("seq")).select_from(_search)
        place = place.join(activity_index, _search.c.rowid == activity_index.c.seq)
        return place.where(self._matches(), *self._by(None))

    def count(self) -> tuple[int, bool]:
        """How many rows match, and whether that is all of them. Where it would take long, it stops early."""
        if self._sqlite and self._words and not self._few:
            matching = select(_search.c.rowid.label("seq")).where(self._matches())
            if self._asked == Filter(q=self._asked.q):
                return self._count(matching, MOST_CHECKED)
            some = matching.order_by(_search.c.rowid.desc()).limit(MOST_CHECKED + 1).subquery()
            rows = select(activity_index).join(some, some.c.seq == activity_index.c.seq)
            return self._check(rows)
        if self._sqlite and len(self._asked.names()) > 1 and not self._few:
            by_best = conditions(self._only(self._best), activity_index.c.__getitem__)
            rows = select(activity_index).where(*by_best).order_by(activity_index.c.timestamp.desc())
            return self._check(rows.limit(MOST_CHECKED + 1))
        return self._count(self.places(), MOST_CHECKED if self._words else MOST_COUNTED)

    def _count(self, rows: Select[Any], most: int) -> tuple[int, bool]:
        some = rows.limit(most + 1).subquery()
        found = int(self._connection.execute(select(func.count()).select_from(some)).scalar_one())
        return min(found, most), found <= most

    def _check(self, rows: Select[Any]) -> tuple[int, bool]:
        """How many of these rows meet the whole filter."""
        some = rows.subquery()
        meets = and_(*conditions(self._asked, some.c.__getitem__))
        both = select(func.count(), func.coalesce(func.sum(case((meets, 1), else_=0)), 0)).select_from(some)
        checked, found = self._connection.execute(both).one()
        return min(int(found), MOST_CHECKED), checked <= MOST_CHECKED

    def _only(self, name: str) -> Filter:
        """The part of the filter that one index answers."""
        field = {"server_name": "server", "tool_name": "tool"}.get(name, name)
        given: dict[str, Any] = {field: self._asked.names()[name]}
        return Filter(start_time=self._asked.start_time, end_time=self._asked.end_time, **given)

    def _matches(self) -> ColumnElement[bool]:
        matches = text("activity_search MATCH :words").bindparams(bindparam("words", fts5_match(self._words)))
        return matches  # type: ignore[return-value]

    def _with_lexemes(self, place: Select[Any]) -> Select[Any]:
        if not self._words:
            return place
        matches = text("array_to_tsvector(string_to_array(activity.search, ' ')) @@ CAST(:words AS tsquery)")
        matches = matches.bindparams(bindparam("words", tsquery(self._words)))
        return place.join(activity, activity.c.seq == activity_index.c.seq).where(matches)

    def _best_index(self) -> tuple[str, bool]:
        """The column whose value the fewest rows have, and whether they are few: SQLite would have to guess."""
        names = self._asked.names()
        if not names:
            return "timestamp", False
        if len(names) == 1 and not self._words:
            return next(iter(names)), False
        rows = {name: self._probe(name, names[name]) for name in _RAREST_FIRST if name in names}
        best = min(rows, key=lambda name: rows[name])
        return best, rows[best] < _FEW

    def _probe(self, name: str, value: str) -> int:
        rows = select(activity_index.c[name]).where(activity_index.c[name] == value).limit(_FEW)
        counted = select(func.count()).select_from(rows.subquery())
        return int(self._connection.execute(counted).scalar_one())

    def _by(self, best: str | None) -> list[ColumnElement[bool]]:
        """The filter for SQLite, which uses no index for a column behind a plus sign: only the best one's is left."""

        def column(name: str) -> ColumnElement[Any]:
            if best is not None and name in {best, "timestamp"}:
                return activity_index.c[name]
            return literal_column(f"+activity_index.{name}")

        return conditions(self._asked, column)
