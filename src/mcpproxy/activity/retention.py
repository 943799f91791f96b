"""What may go? The oldest records, by age, number and size, in steps too small for a call to notice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from math import ceil
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, func, select, text

from mcpproxy.activity.journal import Journal, RecordFailed
from mcpproxy.activity.record import now, to_micros
from mcpproxy.activity.store import digested
from mcpproxy.activity.tables import activity, activity_counts
from mcpproxy.activity.writer import Writer
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import StorageError

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 3600.0
LOOK_SECONDS: Final = 10.0
ROWS_PER_STEP: Final = 200
# Where records come faster than such steps remove them.
_FAR_BEYOND: Final = 10_000
_ROWS_PER_LONG_STEP: Final = 1000
PAUSE_SECONDS: Final = 0.01
# How far beyond its bounds the log may be until the next hour is full.
_SLACK: Final = 0.02
# Free pages that a busy log takes up again soon are not worth giving back.
_SPARE_PAGES: Final = 1000
_PAGES_PER_STEP: Final = 500
# What a row costs in PostgreSQL besides its payloads: the other columns, and its places in the indexes.
_ROW_BYTES: Final = 1000


class _Step(Struct, frozen=True):
    upto: int
    rows: int


class Retention:
    """Keeps the log within its bounds while the journal runs."""

    def __init__(self, storage: Storage, journal: Journal, settings: Callable[[], Activity] = Activity) -> None:
        self._storage = storage
        self._journal = journal
        self._settings = settings

    async def run(self) -> None:
        """Prune now and every hour, and sooner where records come fast; until cancelled."""
        while True:
            before = last = self._journal.stats().written  # what comes while it prunes is looked at, too
            await self._try(self.prune, logging.INFO)
            due = time.monotonic() + EVERY_SECONDS
            looks_at = time.monotonic()
            while (left := due - time.monotonic()) > 0:
                looks_at = max(looks_at + LOOK_SECONDS, time.monotonic())
                await asyncio.sleep(min(looks_at - time.monotonic(), left))
                written = self._journal.stats().written
                if written != before:  # once more after the last, which may not have been counted yet
                    await self._try(self.trim, logging.DEBUG)
                before, last = last, written

    async def _try(self, remove: Callable[[], Awaitable[int]], level: int) -> None:
        try:
            removed = await remove()
            if removed:
                log.log(level, "retention removed the %d oldest records", removed)
        except (StorageError, RecordFailed) as error:
            log.warning("retention is put off: %s", error)

    async def prune(self) -> int:
        """Remove what the settings no longer keep; tells how many records that were."""
        await self._journal.run(Writer.bury_the_dead)
        excess, _ = await asyncio.to_thread(self._excess)
        removed = await self._remove(excess)
        if removed:
            await self._journal.run(_forget_empty_counts)
            await self._give_back_pages()
        return removed

    async def trim(self) -> int:
        """The same where the log is well beyond its bounds; the room that is left goes to the records that come.

        It takes until the next look: done at once, what ten seconds brought would leave calls no time for a second.
        """
        excess, total = await asyncio.to_thread(self._excess)
        return await self._remove(excess, LOOK_SECONDS) if excess > total * _SLACK else 0

    async def _remove(self, excess: int, within: float = 0.0) -> int:
        removed, left, due, settings = 0, excess, time.monotonic() + within, self._settings()
        while step := await asyncio.to_thread(self._next_step, left):
            await self._journal.run(step_remover(step.upto))
            removed += step.rows
            left -= step.rows
            share = min(step.rows / left, 1.0) if left > 0 else 0.0  # the last step may be a small one
            await asyncio.sleep(max((due - time.monotonic()) * share, PAUSE_SECONDS))
            if self._settings() != settings:  # what was too many may be wanted now
                settings = self._settings()
                left, _ = await asyncio.to_thread(self._excess)
        return removed

    def _excess(self) -> tuple[int, int]:
        """How many records are too many, by number or by size, and how many there are."""
        settings = self._settings()
        with self._storage.read() as connection:
            total = _total(connection)
            most_bytes = settings.max_size_mb * 1_048_576
            size = _live_bytes(connection, most_bytes)
        share = 1 - most_bytes / size if size > most_bytes else 0.0
        return max(total - settings.max_records, ceil(total * share)), total

    def _next_step(self, excess: int) -> _Step | None:
        """The next few of the oldest records that are too many or too old."""
        cutoff = to_micros(now() - timedelta(days=self._settings().retention_days))
        most = ROWS_PER_STEP if excess < _FAR_BEYOND else _ROWS_PER_LONG_STEP
        with self._storage.read() as connection:
            # The last row stays, since new ones are numbered from it.
            newest = select(func.max(activity.c.seq)).scalar_subquery()
            oldest = select(activity.c.seq, activity.c.timestamp).where(
                activity.c.seq <= digested(connection), activity.c.seq < newest
            )
            rows = connection.execute(oldest.order_by(activity.c.seq).limit(most)).all()
        goes = 0
        while goes < len(rows) and (goes < excess or rows[goes].timestamp < cutoff):
            goes += 1
        return _Step(rows[goes - 1].seq, goes) if goes else None

    async def _give_back_pages(self) -> None:
        if self._storage.dialect != "sqlite":
            return  # autovacuum does it
        while await asyncio.to_thread(self._spare_pages) > _SPARE_PAGES:
            await self._journal.run(_shrink)
            await asyncio.sleep(PAUSE_SECONDS)

    def _spare_pages(self) -> int:
        with self._storage.read() as connection:
            return _pragma(connection, "freelist_count")


def step_remover(upto: int) -> Callable[[Writer], None]:
    """What removes the records up to this one, leaving a signed word about each chain that loses some."""

    def remove(writer: Writer) -> None:
        rows = writer.ledger.execute(
            "SELECT writer, position, hash FROM activity WHERE seq <= ? ORDER BY seq", (upto,)
        ).fetchall()
        last = {name: (position, hash_) for name, position, hash_ in rows}
        for name, (position, hash_) in last.items():
            writer.ledger.state(writer.signer.sign("pruned", name, position, bytes(hash_), to_micros(now())))
        writer.ledger.remove(upto)

    return remove


def _forget_empty_counts(writer: Writer) -> None:
    writer.ledger.execute("DELETE FROM activity_counts WHERE count <= 0")
    writer.ledger.execute("DELETE FROM activity_tallies WHERE count <= 0")


def _shrink(writer: Writer) -> None:
    writer.ledger.execute(f"PRAGMA incremental_vacuum({_PAGES_PER_STEP})").fetchall()


def _total(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.sum(activity_counts.c.count), 0))).scalar_one())


def _live_bytes(connection: Connection, most: int) -> int:
    """What the log takes up; where that is more than allowed, without the room that earlier records left free."""
    if connection.dialect.name == "sqlite":
        pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
        return pages * _pragma(connection, "page_size")
    whole = text("SELECT pg_total_relation_size('activity') + pg_total_relation_size('activity_index')")
    size = int(connection.execute(whole).scalar_one())
    return size if size <= most else _estimated_bytes(connection)


def _estimated_bytes(connection: Connection) -> int:
    """Deleted rows leave PostgreSQL's files as large as they were, so their size alone says nothing."""
    columns = (activity.c.arguments, activity.c.response, activity.c.metadata, activity.c.error_message)
    payload: Any = sum(func.coalesce(func.pg_column_size(column), 0) for column in columns)
    return int(connection.execute(select(func.coalesce(func.sum(payload + _ROW_BYTES), 0))).scalar_one())


def _pragma(connection: Connection, name: str) -> int:
    return int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
