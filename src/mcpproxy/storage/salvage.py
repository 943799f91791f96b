"""What can still be read of a damaged SQLite file? All rows but those on the pages that are damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Column, Connection, Table, func, insert, select

from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import explain

_ROWS_AT_A_TIME: Final = 500
_FARTHEST: Final = 1 << 40
# A row's number may be damaged, too: one so far from the last is no place to go on from.
_FARTHEST_STEP: Final = 1 << 24
_KINDS: Final = {str: (str,), int: (int,), float: (int, float), bytes: (bytes,), bool: (int,)}


class Saved(Struct, frozen=True):
    """What was copied of one table."""

    table: str
    rows: int
    gaps: int
    """Places at which something could not be read."""


def salvage(damaged: Path, storage: Storage, tables: Iterable[Table]) -> list[Saved]:
    """Copy what can be read of these tables into a new database."""
    try:
        with closing(sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True)) as source:
            # SQLite would not open a file that is shorter than it says; with this it reads what is there.
            source.execute("PRAGMA writable_schema=ON")
            with storage.write() as connection:
                return [_copy(source, connection, table) for table in tables]
    except sqlite3.Error as error:
        raise explain(error, str(damaged)) from error


def _copy(source: sqlite3.Connection, connection: Connection, table: Table) -> Saved:
    there = {row[1] for row in source.execute(f"PRAGMA table_info({table.name})")}
    columns = [column for column in table.columns if column.name in there]
    reader = _Reader(source, table.name, [column.name for column in columns])
    rows = (row for row in reader.rows() if _is_sound(row, columns))
    # A row that breaks a rule of its table is damage as well.
    statement = insert(table).prefix_with("OR IGNORE")
    while some := list(islice(rows, _ROWS_AT_A_TIME)):
        connection.execute(statement, [dict(zip((c.name for c in columns), row, strict=True)) for row in some])
    count = connection.execute(select(func.count()).select_from(table)).scalar_one()
    return Saved(str(table.name), int(count), reader.gaps)


def _is_sound(row: Sequence[Any], columns: Sequence[Column[Any]]) -> bool:
    return all(
        value is None or isinstance(value, _KINDS[column.type.python_type])
        for value, column in zip(row, columns, strict=True)
    )


class _Reader:
    """Reads a table in the order of its rows' numbers, and goes on behind whatever cannot be read."""

    def __init__(self, source: sqlite3.Connection, table: str, columns: Sequence[str]) -> None:
        self._source = source
        # The names are those of our own tables. Without an index: that may be damaged where the rows are not.
        where = f"FROM {table} NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
        self._read = f"SELECT rowid, {', '.join(columns)} {where}"
        self._probe = f"SELECT rowid {where} LIMIT 1"
        self.gaps = 0

    def rows(self) -> Iterator[Sequence[Any]]:
        """Every row that can be read, without its number."""
        start: int | None = 0
        while start is not None:
            last: int | None = None
            try:
                for number, *row in self._source.execute(self._read, (start,)):
                    yield row
                    if last is None or last < number < last + _FARTHEST_STEP:
                        last = number
            except sqlite3.DatabaseError:
                start = start if last is None else max(start, last + 1)
            else:
                return
            # The driver looks one row ahead, and gives up the row before the one that it cannot read.
            while (found := self._one(start)) is not None:
                start = max(start, found[0]) + 1
                yield found[1:]
            self.gaps += 1
            start = self._behind(start)

    def _one(self, start: int) -> Sequence[Any] | None:
        try:
            row: Sequence[Any] | None = self._source.execute(f"{self._read} LIMIT 1", (start,)).fetchone()
        except sqlite3.DatabaseError:
            return None
        return row

    def _behind(self, start: int) -> int | None:
        """The first number from which on rows can be read again."""
        bad, step = start, 1
        while not self._is_readable(start + step):
            bad, step = start + step, step * 2
            if step > _FARTHEST:
                return None
        good = start + step
        while good - bad > 1:
            middle = (bad + good) // 2
            if self._is_readable(middle):
                good = middle
            else:
                bad = middle
        return good

    def _is_readable(self, number: int) -> bool:
        try:
            self._source.execute(self._probe, (number,)).fetchall()
        except sqlite3.DatabaseError:
            return False
        return True
