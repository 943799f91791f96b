"""How do rows get into the database? Plain statements on one raw connection, which only the writer uses.

Through SQLAlchemy each statement of a commit costs more than SQLite itself does (bench/activity), hence the driver's
own cursor here, on a connection of the engine's pool.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final, TypeVar

from msgspec import Struct
from sqlalchemy import PoolProxiedConnection

from mcpproxy.activity.chain import GENESIS, Kind, Statement
from mcpproxy.activity.prepare import Kept
from mcpproxy.activity.record import to_micros
from mcpproxy.activity.tables import activity, activity_checkpoints, activity_index
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Durability, Storage
from mcpproxy.storage.errors import StorageUnreadable, StorageUnwritable

log = logging.getLogger(__name__)

Row = TypeVar("Row")

HOUR: Final = 3_600_000_000
DAY: Final = 24 * HOUR
"""The spans over which records are tallied, in microseconds."""

COLUMNS: Final = tuple(column.name for column in activity.columns if column.name != "seq")

# 21 values each, and PostgreSQL takes 65,535 of them.
MOST_ROWS_PER_STATEMENT: Final = 64
# Any number, as long as every replica takes the same one.
_ORDER_LOCK: Final = 0x6D63_7071
_INDEXED: Final = tuple(column.name for column in activity_index.columns)
COUNTED: Final = ("type", "status", "server_name", "tool_name", "intent_type")
_STATEMENT: Final = tuple(column.name for column in activity_checkpoints.columns)

# The names in the statements are those of our own tables.
_APPEND: Final = f"INSERT INTO activity ({', '.join(COLUMNS)}) VALUES "  # noqa: S608
_OPEN: Final = "INSERT INTO activity_open_calls (id, writer, record) VALUES "
_CLOSE: Final = "DELETE FROM activity_open_calls WHERE id IN "
_STATE: Final = (
    f"INSERT INTO activity_checkpoints ({', '.join(_STATEMENT)}) VALUES ({', '.join('?' * len(_STATEMENT))}) "  # noqa: S608
    "ON CONFLICT (writer, kind) DO UPDATE SET position = excluded.position, hash = excluded.hash, "
    "signed_at = excluded.signed_at, key = excluded.key, signature = excluded.signature"
)
_INDEX: Final = (
    f"INSERT INTO activity_index ({', '.join(_INDEXED)}) "  # noqa: S608
    f"SELECT {', '.join(_INDEXED)} FROM activity WHERE seq > ? AND seq <= ?"
)
_COUNT: Final = (
    f"INSERT INTO activity_counts ({', '.join(COUNTED)}, count) "
    "SELECT " + ", ".join(f"COALESCE({name}, '')" for name in COUNTED) + ", {sign}COUNT(*) "
    "FROM activity WHERE seq > ? AND seq <= ? GROUP BY 1, 2, 3, 4, 5 "
    f"ON CONFLICT ({', '.join(COUNTED)}) DO UPDATE SET count = activity_counts.count + excluded.count"
)
# Grouped once before it is taken apart by span and dimension: rows that agree in everything are most of them.
_TALLY: Final = (
    f"WITH parts AS (SELECT timestamp / {HOUR} AS hour, type, status, intent_type, server_name, tool_name, "  # noqa: S608
    "COUNT(*) AS count FROM activity WHERE seq > ? AND seq <= ? GROUP BY 1, 2, 3, 4, 5, 6) "
    "INSERT INTO activity_tallies (span, bucket, dimension, value, count) "
    "SELECT span, bucket, dimension, value, {sign}SUM(count) FROM ("
    f"SELECT span, hour / (span / {HOUR}) AS bucket, dimension, CASE dimension WHEN 'type' THEN type "
    "WHEN 'status' THEN status WHEN 'intent' THEN intent_type WHEN 'server' THEN server_name "
    "ELSE CASE type WHEN 'tool_call' THEN COALESCE(server_name, '') || ':' || tool_name END END AS value, count "
    "FROM parts "
    f"CROSS JOIN (SELECT {HOUR} AS span UNION ALL SELECT {DAY}) AS spans "
    "CROSS JOIN (SELECT 'type' AS dimension UNION ALL SELECT 'status' UNION ALL SELECT 'intent' "
    "UNION ALL SELECT 'server' UNION ALL SELECT 'tool') AS dimensions) AS taken_apart "
    "WHERE value IS NOT NULL GROUP BY 1, 2, 3, 4 "
    "ON CONFLICT (span, bucket, dimension, value) DO UPDATE SET count = activity_tallies.count + excluded.count"
)
_FIND_TEXT: Final = (
    "INSERT INTO activity_search (rowid, search) SELECT seq, search FROM activity WHERE seq > ? AND seq <= ?"
)
_FORGET_TEXT: Final = (
    "INSERT INTO activity_search (activity_search, rowid, search) "
    "SELECT 'delete', seq, search FROM activity WHERE seq > ? AND seq <= ?"
)


class Tail(Struct, frozen=True):
    """Where a chain ends."""

    position: int = 0
    hash: bytes = GENESIS


def row_of(kept: Kept, prev_hash: bytes, hash_: bytes) -> tuple[Any, ...]:
    """The values of COLUMNS."""
    record = kept.record
    return (
        record.id,
        record.type,
        record.source,
        record.server_name,
        record.tool_name,
        record.status,
        record.duration_ms,
        to_micros(record.timestamp),
        record.request_id,
        record.session_id,
        record.client_name,
        record.writer,
        record.position,
        prev_hash,
        hash_,
        kept.intent_type,
        kept.search,
        record.error_message,
        kept.metadata,
        kept.arguments,
        kept.response,
    )


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - at every commit, where a Path would triple the cost
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _in_powers_of_two(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows in as few pieces as their number has bits.

    One statement for many rows means one turn without the interpreter's lock, where a statement per row would wait for
    the event loop after each. Few different sizes mean that the driver has every statement prepared.
    """
    done = 0
    while done < len(rows):
        size = min(1 << (len(rows) - done).bit_length() - 1, MOST_ROWS_PER_STATEMENT)
        yield rows[done : done + size]
        done += size


@cache
def _marks(rows: int, columns: int) -> str:
    row = "(" + ", ".join("?" * columns) + ")"
    return ", ".join([row] * rows)


@cache
def _append_statement(rows: int) -> str:
    return _APPEND + _marks(rows, len(COLUMNS))


class Ledger:
    """The writer's connection. It is opened when first needed and dropped after an error."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._sqlite = storage.dialect == "sqlite"
        self._pooled: PoolProxiedConnection | None = None
        self._connection: Any = None
        self._durability: Durability | None = None
        self._inode = self._inode_beside = 0
        self._patience = self._full_patience = 0
        """For how many milliseconds another process's transaction is waited for, now and where there is time."""
        self.times_opened = 0
        self.before_opening: Callable[[], None] = lambda: None
        """For whoever keeps another connection: beside one that has a removed file open no new one can be had."""

    @property
    def connection(self) -> Any:
        """The driver's own connection."""
        return self._connection

    @property
    def inode(self) -> int:
        """Which file SQLite writes to; 0 where it is none."""
        return self._inode

    def connect(self, settings: Activity) -> bool:
        """Make sure of a working connection as durable as the settings say; tells whether it is a new one."""
        if self._sqlite and self._connection is not None:
            self._check_file()
        new = self._connection is None
        if new:
            self.times_opened += 1
            self.before_opening()
            self._pooled = self._storage.engine.raw_connection()
            self._connection = self._pooled.driver_connection
            self._durability = None
            if self._sqlite:
                self._patience = self._full_patience = self.execute("PRAGMA busy_timeout").fetchone()[0]
                # A commit may be made in the event loop, which must not wait for the disk: relief.py does.
                self._connection.execute("PRAGMA wal_autocheckpoint=0")
                self._inode, self._inode_beside = _inode(self._storage.location), 0
            else:
                # A replica that freezes inside a transaction must not stop the others.
                self._connection.execute("SET idle_in_transaction_session_timeout = '10s'")
                self._connection.execute("SET lock_timeout = '10s'")
                self._connection.commit()
        if settings.durability != self._durability:
            self._storage.set_durability(self._connection, settings.durability)
            self._durability = settings.durability
        return new

    def _check_file(self) -> None:
        """SQLite would go on writing into a file that was deleted, and every record would be lost with it."""
        if self._is_in_place():
            return
        if _inode(self._storage.location) == self._inode:
            self._write_back()
        self.drop()
        self._storage.engine.dispose()
        if not _inode(self._storage.location):
            raise StorageUnreadable(
                f"The database {self._storage.location} was removed while mcpproxy ran. "
                "Put it back, or restart mcpproxy to begin with an empty one."
            )

    def _is_in_place(self) -> bool:
        location = self._storage.location
        return _inode(location) == self._inode and (
            not self._inode_beside or _inode(f"{location}-wal") == self._inode_beside
        )

    def _write_back(self) -> None:
        """The file beside the database was removed. We still have it open: what it holds goes into the database."""
        beside = f"{self._storage.location}-wal"
        self._wait_for_others(self._full_patience)
        if self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise StorageUnwritable(
                f"The file {beside} was removed while mcpproxy ran, and what it held cannot be written back while "
                "somebody reads the database. It is tried again with the next record."
            )
        log.error("%s was removed while mcpproxy ran; what it held was written back, and nothing is lost", beside)

    def drop(self) -> None:
        """Give up the connection, and with it whatever was not committed."""
        if self._pooled is not None:
            self._pooled.invalidate()
            self._pooled.close()
        self._pooled = self._connection = None

    def is_quick(self, settings: Activity) -> bool:
        """Whether a commit now writes to a file that is open, and waits for no disk and no network."""
        return (
            self._sqlite
            and self._connection is not None
            and settings.durability == self._durability == "process"
            # The thread looks for the file beside it: what went into that is not lost while we have it open.
            and _inode(self._storage.location) == self._inode
        )

    def begin_at_once(self) -> bool:
        """Begin a transaction, unless another process has one."""
        self._wait_for_others(0)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True

    def _look_beside(self) -> None:
        """Note which file SQLite keeps beside the database, once it is sure to be there."""
        if not self._inode_beside:
            self._inode_beside = _inode(f"{self._storage.location}-wal")

    def _wait_for_others(self, milliseconds: int) -> None:
        if milliseconds != self._patience:
            self._connection.execute(f"PRAGMA busy_timeout={milliseconds}")
            self._patience = milliseconds

    def begin(self) -> None:
        """Begin a transaction, after every earlier one and before every later: rows are numbered as they commit."""
        if self._sqlite:
            self._wait_for_others(self._full_patience)
            self._connection.execute("BEGIN IMMEDIATE")
            self._look_beside()
        else:
            self.execute("SELECT pg_advisory_xact_lock(?)", (_ORDER_LOCK,))

    def commit(self) -> None:
        """Make it last."""
        self._connection.commit()

    def rollback(self) -> bool:
        """Undo what was not committed; False where the connection is not fit for more."""
        try:
            self._connection.rollback()
        except Exception:
            return False
        return True

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run one statement, with `?` for each value, and give its cursor."""
        return self._connection.execute(statement if self._sqlite else statement.replace("?", "%s"), values)

    def append(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows at the end."""
        for some in _in_powers_of_two(rows):
            self.execute(_append_statement(len(some)), list(chain.from_iterable(some)))

    def append_at_once(self, rows: Sequence[Sequence[Any]]) -> bool:
        """Add rows in a transaction of their own, unless another process has one.

        A statement by itself is a transaction: beginning one and committing it would be two more, at twice the cost.
        """
        self._wait_for_others(0)
        try:
            values = rows[0] if len(rows) == 1 else list(chain.from_iterable(rows))
            self._connection.execute(_append_statement(len(rows)), values)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def open_calls(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Note calls that the upstream is about to hear of."""
        for some in _in_powers_of_two(rows):
            self.execute(_OPEN + _marks(len(some), 3), list(chain.from_iterable(some)))

    def close_calls(self, ids: Sequence[str]) -> None:
        """Forget calls that are on record now."""
        for some in _in_powers_of_two(ids):
            self.execute(_CLOSE + _marks(1, len(some)), some)

    def state(self, statement: Statement) -> None:
        """Keep a signed statement in place of the earlier one of its kind."""
        self.execute(_STATE, tuple(getattr(statement, name) for name in _STATEMENT))

    def statement(self, where: str, *values: Any) -> Statement | None:
        """The statement that meets a condition."""
        query = f"SELECT {', '.join(_STATEMENT)} FROM activity_checkpoints WHERE {where}"  # noqa: S608
        row = self.execute(query, values).fetchone()
        return Statement(**dict(zip(_STATEMENT, row, strict=True))) if row else None

    def withdraw(self, writer: str, kind: Kind) -> None:
        """Remove a statement that a later one stands for."""
        self.execute("DELETE FROM activity_checkpoints WHERE writer = ? AND kind = ?", (writer, kind))

    def tail(self, writer: str) -> Tail:
        """Where this chain ends; retention may have taken all of its rows."""
        row = self.execute(
            "SELECT position, hash FROM activity WHERE writer = ? ORDER BY seq DESC LIMIT 1", (writer,)
        ).fetchone()
        row = (
            row
            or self.execute(
                "SELECT position, hash FROM activity_checkpoints WHERE writer = ? AND kind = 'pruned'", (writer,)
            ).fetchone()
        )
        return Tail(row[0], bytes(row[1])) if row else Tail()

    def digest(self, most: int) -> int:
        """Index, count and make searchable the oldest rows that are not yet; tells how many it did."""
        done = self.execute("SELECT COALESCE(MAX(seq), 0) FROM activity_index").fetchone()[0]
        upto, rows = self.execute(
            "SELECT MAX(seq), COUNT(*) FROM (SELECT seq FROM activity WHERE seq > ? ORDER BY seq LIMIT ?) AS due",
            (done, most),
        ).fetchone()
        if rows:
            self.execute(_INDEX, (done, upto))
            self.execute(_COUNT.format(sign=""), (done, upto))
            self.execute(_TALLY.format(sign=""), (done, upto))
            if self._sqlite:
                self.execute(_FIND_TEXT, (done, upto))
        return int(rows)

    def remove(self, upto: int) -> None:
        """Remove the rows up to this one, which must be digested, from everywhere."""
        if self._sqlite:
            self.execute(_FORGET_TEXT, (0, upto))
        self.execute(_COUNT.format(sign="-"), (0, upto))
        self.execute(_TALLY.format(sign="-"), (0, upto))
        self.execute("DELETE FROM activity_index WHERE seq <= ?", (upto,))
        self.execute("DELETE FROM activity WHERE seq <= ?", (upto,))
