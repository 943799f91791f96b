"""Is the log whole? The database's own check, the chain of records, and the newest of them."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from mcpproxy.cli import looks
from mcpproxy.cli.doctor.finding import Finding, broken, note, ok, warning
from mcpproxy.cli.doctor.house import check_clock

if TYPE_CHECKING:
    from mcpproxy.activity.verify import Problem
    from mcpproxy.cli.session import Session
    from mcpproxy.storage.engine import Storage
    from mcpproxy.storage.errors import StorageDamaged

_PAGES_SECONDS: Final = 600.0
_QUICK_PAGES_SECONDS: Final = 10.0
_INSTRUCTIONS_PER_LOOK: Final = 100_000
_LOCK_SECONDS: Final = 2.0
_SALVAGE: Final = "Stop mcpproxy and put a backup in its place, or save what can be read: mcpproxy doctor --salvage DIR"


def check_database(session: Session, *, quick: bool) -> Iterator[Finding]:
    """Does the database open, is it undamaged, and is what it holds what was written?"""
    from mcpproxy.storage.engine import FILE_NAME
    from mcpproxy.storage.errors import StorageDamaged, StorageError

    if session.config.storage == "sqlite" and not (session.data_dir / FILE_NAME).exists():
        yield note("database", "there is none yet; the first call or mcpproxy serve makes it")
        return
    try:
        with session.storage() as storage:
            pages = _check_pages(storage, _QUICK_PAGES_SECONDS if quick else _PAGES_SECONDS)
            yield pages
            if pages.level != "broken":
                yield from _check_writing(session, storage)
                yield from check_clock(_newest(storage))
            if not quick:
                yield from _check_chain(session, storage)
    except StorageDamaged as error:
        yield _damaged(error)
    except StorageError as error:
        yield broken("database", str(error))


def _damaged(error: StorageDamaged) -> Finding:
    return broken("database", error.what, error.advice or _SALVAGE)


def _check_pages(storage: Storage, seconds: float) -> Finding:
    """SQLite's own check. It reads the whole file, so it has a bound."""
    from mcpproxy.storage.errors import StorageDamaged

    if storage.dialect != "sqlite":
        return ok("database", f"{storage.location} answers")
    try:
        problems = _problems_of_pages(storage, seconds)
    except StorageDamaged as error:
        return _damaged(error)
    if problems is None:
        text = f"{storage.location} shows no damage so far; its check was ended after {seconds:g} s"
        return note("database", text, "It has more time without --quick.")
    if problems == ["ok"]:
        return ok("database", f"{storage.location} is undamaged")
    shown = "; ".join(" ".join(problem.split()) for problem in problems)
    return broken("database", f"{storage.location} is damaged: {shown}", _SALVAGE)


def _problems_of_pages(storage: Storage, seconds: float) -> list[str] | None:
    """What SQLite finds, which is "ok" where that is nothing; None where the time was too short to tell."""
    deadline = time.monotonic() + seconds
    with storage.read() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_progress_handler(lambda: time.monotonic() > deadline, _INSTRUCTIONS_PER_LOOK)
        try:
            return [str(row[0]) for row in driver.execute("PRAGMA quick_check(5)")]
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                return None
            raise storage.explain(error) from error
        finally:
            driver.set_progress_handler(None, 0)


def _check_writing(session: Session, storage: Storage) -> Iterator[Finding]:
    """Whether a record could be written; where a daemon runs it knows best, and says so itself."""
    if storage.dialect != "sqlite" or session.daemon is not None:
        return
    if not os.access(storage.location, os.W_OK):
        text = f"{storage.location} cannot be written by this user"
        fix = f"See whose it is: ls -l {storage.location}; if yours: chmod 600 {storage.location}"
        yield broken("database", text, fix)
        return
    try:
        probe = sqlite3.connect(storage.location, timeout=_LOCK_SECONDS, isolation_level=None)
        try:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("ROLLBACK")
        finally:
            probe.close()
    except sqlite3.Error as error:
        yield broken("database", str(storage.explain(error)), f"See who has it open: fuser -v {storage.location}")


def _check_chain(session: Session, storage: Storage) -> Iterator[Finding]:
    from mcpproxy.activity.verify import verify_in

    found = verify_in(session.data_dir, storage)
    count = f"{looks.plural(found.records, 'record')} in {looks.plural(len(found.chains), 'chain')}"
    if found.ok:
        yield ok("log", f"unaltered: {count}")
        return
    first = found.problems[0]
    word = "damaged" if first.kind == "unreadable" else "altered"
    yield broken("log", f"{word}: {first.text}", _what_to_do(session, first))
    if len(found.problems) > 1:
        yield warning("log", f"{len(found.problems) - 1} more problems in {count}")


def _what_to_do(session: Session, problem: Problem) -> str:
    if problem.kind == "unreadable":
        return _SALVAGE
    noted = session.data_dir / "writers" / problem.writer
    if problem.kind == "cut" and noted.exists():
        return (
            "Were all files of the database copied, the one with -wal at its end too? Put the right ones back; "
            f"if they are gone for good, remove {noted} to be told no more."
        )
    return "See all of it: mcpproxy activity verify"


def _newest(storage: Storage) -> float | None:
    from mcpproxy.activity.filters import Filter
    from mcpproxy.activity.query import list_records

    records = list_records(storage, Filter(), 1).activities
    return msgspec.convert(records[0].timestamp, datetime).timestamp() if records else None
