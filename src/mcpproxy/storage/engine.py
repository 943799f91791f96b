"""Where does it stay? One SQLAlchemy engine, on SQLite in the data directory or on PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from mcpproxy.storage.errors import StorageDamaged, StorageReadOnly, StorageUnreadable, StorageUnwritable, explain
from mcpproxy.storage.metadata import metadata
from mcpproxy.storage.migrate import bring_up_to_date, is_current

__all__ = ["Durability", "Storage", "metadata", "open_storage"]

Durability = Literal["process", "power"]

FILE_NAME: Final = "mcpproxy.db"
BUSY_TIMEOUT_MS: Final = 5_000
# Lies beside every database that has held a record.
_MARK: Final = "activity-signing.pub"
_WRITES: Final = "mcpproxy_writes"
_SYNCHRONOUS: Final = {"process": "NORMAL", "power": "FULL"}


@dataclass(frozen=True)
class Storage:
    """An open, migrated database. Its connections may be used from any thread, one thread at a time."""

    engine: Engine
    dialect: Literal["sqlite", "postgresql"]
    location: str
    read_only: bool

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection on one unchanging view of the database."""
        engine = self.engine
        if self.dialect == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with self._transaction(engine) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection in a transaction that commits at the end, or leaves no trace after an error."""
        with self._transaction(self.engine.execution_options(**{_WRITES: True})) as connection:
            yield connection

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise self.explain(error) from error

    def set_durability(self, driver_connection: Any, durability: Durability) -> None:
        """Make the later commits of a connection survive the process, or the machine; not inside a transaction."""
        if self.dialect == "sqlite":
            driver_connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
        else:
            # Below `power` it is the server's own default: what it survives is its operator's choice.
            setting = "on" if durability == "power" else "DEFAULT"
            driver_connection.execute(f"SET synchronous_commit TO {setting}")
            driver_connection.commit()

    def explain(self, error: Exception) -> Exception:
        """One of our errors for one of a driver's, or the error itself where it speaks of something else."""
        explained = explain(error, self.location)
        if isinstance(explained, StorageReadOnly):
            self.engine.dispose()  # a connection that was opened for reading stays so when the file may be written
        return explained

    def close(self) -> None:
        """Give every pooled connection back."""
        self.engine.dispose()


def open_storage(
    setting: str, data_dir: Path, durability: Durability = "process", *, read_only: bool = False
) -> Storage:
    """Open what the `storage` setting names and bring its tables up to date.

    With `read_only` nothing is created, migrated or written: that is for a command beside a running daemon.
    """
    if setting == "sqlite":
        storage = _open_sqlite(data_dir / FILE_NAME, durability, read_only)
    elif setting.startswith(("postgresql://", "postgres://")):
        storage = _open_postgresql(setting, durability, read_only)
    else:
        raise StorageUnreadable("The `storage` setting must be `sqlite` or start with `postgresql://`.")
    try:
        _check_revision(storage)
    except BaseException:
        storage.close()
        raise
    return storage


def _check_revision(storage: Storage) -> None:
    """Migrate if needed; look first, so that an up-to-date database is not locked at every start."""
    with storage.read() as connection:
        if is_current(connection, storage.location):
            return
    if storage.read_only:
        raise StorageUnreadable(
            f"The database {storage.location} is of an earlier version. "
            "Start `mcpproxy serve` once to bring it up to date."
        )
    with storage.write() as connection:
        bring_up_to_date(connection, storage.location)
    if storage.dialect == "sqlite":
        _fill_file(storage.engine)


def _fill_file(engine: Engine) -> None:
    """Write the tables into the file itself: in the one beside it they would be lost with it, and all else be vain."""
    pooled = engine.raw_connection()
    with contextlib.closing(pooled), contextlib.suppress(sqlite3.Error):  # they are safe, only not yet as safe
        pooled.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _open_sqlite(path: Path, durability: Durability, read_only: bool) -> Storage:
    try:
        _prepare_file(path, read_only)
    except OSError as error:
        raise StorageUnreadable(
            f"The database {path} cannot be opened ({error.strerror}). Check its path and permissions."
        ) from error
    mode = "ro" if read_only else "rw"
    url = URL.create("sqlite", database=path.absolute().as_uri(), query={"uri": "true", "mode": mode})
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False})

    # No connection is opened beside others that have a removed file open: it would see a database that never was.
    beside = path.with_name(f"{path.name}-wal")
    alive: set[int] = set()

    @event.listens_for(engine, "close")
    def forget(connection: sqlite3.Connection, _record: object) -> None:
        alive.discard(id(connection))

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        if alive and not beside.exists():
            raise StorageUnwritable(
                f"The file {beside} was removed while mcpproxy ran. What it held is written back with the next record."
            )
        # The driver would open transactions by itself and too late; `begin` below does it instead.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        if not read_only:
            if not connection.execute("PRAGMA page_count").fetchone()[0]:
                # For a new file alone: elsewhere it would be without effect, and write all the same, so that nobody
                # could read a database that is locked or full. It lets retention give pages back in small steps.
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            _turn_to_wal(connection)
            connection.execute("PRAGMA schema_version")  # which makes the file beside, where there is to be one
            if beside.exists():
                alive.add(id(connection))
            # A checkpoint syncs the disk: at 32 MB it is seldom, and pages written often in between go out once.
            connection.execute("PRAGMA wal_autocheckpoint=8000")
            # Cut when it is begun anew, its length tells how much has gathered there.
            connection.execute("PRAGMA journal_size_limit=0")
        connection.execute(f"PRAGMA synchronous={_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA cache_size=-16000")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        # A reader that turns writer in mid-transaction fails at once if someone wrote between: lock first.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return Storage(engine, "sqlite", str(path), read_only)


def _turn_to_wal(connection: sqlite3.Connection) -> None:
    """For this SQLite does not wait when several start on a new file together: ask again, for as long as it would."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            kind = error.sqlite_errorcode & 0xFF
            if kind == sqlite3.SQLITE_READONLY:
                return  # such as a backup with the wrong mode: it can be read, and says so to whoever writes
            if kind != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _prepare_file(path: Path, read_only: bool) -> None:
    """Only the owner may read what agents sent and got; SQLite gives its side files the same mode."""
    if _was_emptied(path):
        raise StorageDamaged(
            f"The database {path} is empty, although it held records before: it was cut off, and was left as it is.",
            "Put a backup in its place, or remove the empty file to begin anew.",
        )
    if read_only:
        if not path.exists():
            raise StorageUnreadable(f"There is no database at {path} yet. Start `mcpproxy serve` to create it.")
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    for name in (f"{path.name}-wal", f"{path.name}-shm"):
        side = path.with_name(name)
        if side.exists() and not os.access(side, os.W_OK):
            side.chmod(0o600)  # left from when the database itself could only be read


def _was_emptied(path: Path) -> bool:
    """Whether the file has nothing in it that was once something; SQLite would make a new database of it."""
    beside = path.with_name(f"{path.name}-wal")
    return (
        path.exists()
        and not path.stat().st_size
        and not (beside.exists() and beside.stat().st_size)
        and (path.parent / _MARK).exists()
    )


def _open_postgresql(setting: str, durability: Durability, read_only: bool) -> Storage:
    try:
        url = make_url(setting).set(drivername="postgresql")
    except (ArgumentError, ValueError) as error:
        raise StorageUnreadable(
            "The `storage` setting is not a connection string. Write it as postgresql://user@host:5432/database."
        ) from error
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        # A dead peer must become an error that the journal can act on, not a thread that waits for ever.
        connect_args={"connect_timeout": 5, "tcp_user_timeout": 15_000, "application_name": "mcpproxy"},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            if read_only:
                cursor.execute("SET default_transaction_read_only = on")
            if durability == "power":
                cursor.execute("SET synchronous_commit TO on")
        connection.commit()

    return Storage(engine, "postgresql", url.render_as_string(hide_password=True), read_only)
