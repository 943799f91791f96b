"""How are rows read back? As the records they were, whether or not they are indexed yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from msgspec import Raw
from sqlalchemy import ColumnElement, Connection, Row, Select, func, literal, select

from mcpproxy.activity.filters import Filter
from mcpproxy.activity.record import NOTHING, Stored, from_micros, to_micros
from mcpproxy.activity.tables import activity, activity_index
from mcpproxy.activity.words import like_patterns, query_words

_READ: Final = [column for column in activity.columns if column.name not in {"intent_type", "search"}]


def select_records() -> Select[Any]:
    """The columns that `stored` needs, from the ledger."""
    return select(*_READ)


def stored(row: Row[Any]) -> Stored:
    """A row that begins with the columns of `select_records`, as the record it is."""
    values: Sequence[Any] = row[: len(_READ)]
    (
        _,
        id_,
        type_,
        source,
        server_name,
        tool_name,
        status,
        duration_ms,
        timestamp,
        request_id,
        session_id,
        client_name,
        writer,
        position,
        prev_hash,
        hash_,
        error_message,
        metadata,
        arguments,
        response,
    ) = values
    return Stored(
        id=id_,
        type=type_,
        source=source,
        server_name=server_name,
        tool_name=tool_name,
        status=status,
        error_message=error_message,
        arguments=_raw(arguments),
        response=_raw(response),
        duration_ms=duration_ms,
        timestamp=from_micros(timestamp),
        request_id=request_id,
        session_id=session_id,
        client_name=client_name,
        metadata=_raw(metadata),
        writer=writer,
        position=position,
        prev_hash=prev_hash.hex(),
        hash=hash_.hex(),
    )


def _raw(text: str | None) -> Raw:
    return NOTHING if text is None else Raw(text.encode())


def digested(connection: Connection) -> int:
    """The last row that is indexed, counted and searchable; later ones are in the ledger only."""
    return int(connection.execute(select(func.coalesce(func.max(activity_index.c.seq), 0))).scalar_one())


def digested_and_newest(connection: Connection) -> tuple[int, int]:
    """The same, and the last row of the ledger."""
    both = select(
        select(func.coalesce(func.max(activity_index.c.seq), 0)).scalar_subquery(),
        select(func.coalesce(func.max(activity.c.seq), 0)).scalar_subquery(),
    )
    done, newest = connection.execute(both).one()
    return int(done), int(newest)


def records(connection: Connection, seqs: Collection[int]) -> dict[int, Stored]:
    """The records with these numbers."""
    if not seqs:
        return {}
    rows = connection.execute(select_records().where(activity.c.seq.in_(seqs)))
    return {row.seq: stored(row) for row in rows}


def conditions(asked: Filter, column: Callable[[str], ColumnElement[Any]]) -> list[ColumnElement[bool]]:
    """What a filter, but for its words, says about a row with these columns."""
    found = [column(name) == value for name, value in asked.names().items()]
    if asked.start_time is not None:
        found.append(column("timestamp") >= to_micros(asked.start_time))
    if asked.end_time is not None:
        found.append(column("timestamp") < to_micros(asked.end_time))
    return found


def in_ledger(asked: Filter) -> list[ColumnElement[bool]]:
    """What a filter says about a row of the ledger, found without an index."""
    return [*conditions(asked, activity.c.__getitem__), *has_words(asked.q)]


def has_words(query: str | None) -> list[ColumnElement[bool]]:
    """That a row of the ledger has all words of a query, found without an index."""
    if query is None:
        return []
    words = query_words(query)
    if not words:
        return [literal(False)]
    padded = literal(" ") + activity.c.search + literal(" ")
    return [padded.like(pattern) for pattern in like_patterns(words)]
