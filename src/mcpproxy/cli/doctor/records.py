"""Is the log whole? The database's own check, the chain of records, and the newest of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from mcpproxy.cli import looks
from mcpproxy.cli.doctor.finding import Finding, broken, note, ok, warning
from mcpproxy.cli.doctor.house import check_clock

if TYPE_CHECKING:
    from mcpproxy.cli.session import Session
    from mcpproxy.storage.engine import Storage


def check_database(session: Session, *, quick: bool) -> Iterator[Finding]:
    """Does the database open, is it undamaged, and is what it holds what was written?"""
    from mcpproxy.storage.engine import FILE_NAME
    from mcpproxy.storage.errors import StorageError

    if session.config.storage == "sqlite" and not (session.data_dir / FILE_NAME).exists():
        yield note("database", "there is none yet; the first call or mcpproxy serve makes it")
        return
    try:
        with session.storage() as storage:
            yield from _check_pages(storage)
            yield from check_clock(_newest(storage))
            if not quick:
                yield from _check_chain(session, storage)
    except StorageError as error:
        yield broken("database", str(error))


def _check_pages(storage: Storage) -> Iterator[Finding]:
    if storage.dialect != "sqlite":
        yield ok("database", f"{storage.location} answers")
        return
    with storage.read() as connection:
        problems = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check(5)")]
    if problems == ["ok"]:
        yield ok("database", f"{storage.location} is undamaged")
    else:
        fix = "Stop mcpproxy, keep a copy of the file, and put a backup in its place."
        yield broken("database", f"{storage.location} is damaged: {'; '.join(problems)}", fix)


def _check_chain(session: Session, storage: Storage) -> Iterator[Finding]:
    from mcpproxy.activity.chain import public_key_in
    from mcpproxy.activity.verify import verify

    found = verify(storage, public_key_in(session.data_dir))
    count = f"{looks.plural(found.records, 'record')} in {looks.plural(len(found.chains), 'chain')}"
    if found.ok:
        yield ok("log", f"unaltered: {count}")
        return
    first = found.problems[0].text
    yield broken("log", f"altered: {first}", "See all of it: mcpproxy activity verify")
    if len(found.problems) > 1:
        yield warning("log", f"{len(found.problems) - 1} more problems in {count}")


def _newest(storage: Storage) -> float | None:
    from mcpproxy.activity.filters import Filter
    from mcpproxy.activity.query import list_records

    records = list_records(storage, Filter(), 1).activities
    return msgspec.convert(records[0].timestamp, datetime).timestamp() if records else None
