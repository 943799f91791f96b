"""What is new? Records as they are committed, from any point on, with no gap and no repeat.

Followers read at their own pace: what is recent comes from a short memory that all of them share, what is older from
the database. So a slow one costs no memory, and nobody has to be cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, func, select
from ulid import ULID

from mcpproxy.activity.filters import BadFilter
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Stored
from mcpproxy.activity.store import digested, select_records, stored
from mcpproxy.activity.tables import activity, activity_index
from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import StorageError

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
_MOST_REMEMBERED: Final = 200
_PAGE: Final = 100


class Skipped(Struct, frozen=True):
    """The word for a follower whose last record is no longer there: what came right after it may be missing."""

    after: str


class Feed:
    """The new records of one database, those of other processes included. Used from one event loop."""

    def __init__(self, storage: Storage, journal: Journal | None = None) -> None:
        self._storage = storage
        self._journal = journal
        self._recent: deque[tuple[int, Stored]] = deque()
        self._complete_after = self._newest = 0
        self._changed = asyncio.Event()
        self._followers = 0
        self._joining = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def follow(self, after: str | None = None) -> AsyncGenerator[Stored | Skipped, None]:
        """Every record that is committed from now on, or after the one with this id."""
        await self._join()
        try:
            seq = self._newest
            if after is not None:
                seq, found = await asyncio.to_thread(self._place_of, after)
                if not found:
                    yield Skipped(after)
            while True:
                changed = self._changed
                for number, record in await self._after(seq):
                    seq = number
                    yield record
                if seq >= self._newest:
                    await changed.wait()
        finally:
            await self._leave()

    async def _join(self) -> None:
        async with self._joining:
            if self._task is None:
                self._newest = self._complete_after = await asyncio.to_thread(self._last)
                self._recent.clear()
                self._task = asyncio.create_task(self._watch())
            self._followers += 1

    async def _leave(self) -> None:
        self._followers -= 1
        if self._followers == 0 and self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        """Remember what is new, after each commit of this process, and now and then for those of others."""
        woken = asyncio.Event()
        stop_listening = self._journal.listen(woken.set) if self._journal else None
        try:
            while True:
                woken.clear()
                if not await self._look():
                    # Not wait_for: until Python 3.12 it loses a cancellation that comes with the event.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(POLL_SECONDS):
                            await woken.wait()
        finally:
            if stop_listening is not None:
                stop_listening()

    async def _look(self) -> bool:
        try:
            rows = await asyncio.to_thread(self._read, self._newest)
        except StorageError as error:
            log.warning("new records cannot be read, and are looked for again: %s", error)
            return False
        if rows:
            self._recent.extend(rows)
            while len(self._recent) > _MOST_REMEMBERED:
                self._complete_after, _ = self._recent.popleft()
            self._newest = rows[-1][0]
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
        return bool(rows)

    async def _after(self, seq: int) -> list[tuple[int, Stored]]:
        if seq >= self._complete_after:
            return [item for item in self._recent if item[0] > seq]
        return await asyncio.to_thread(self._read, seq)

    def _read(self, seq: int) -> list[tuple[int, Stored]]:
        page = select_records().where(activity.c.seq > seq).order_by(activity.c.seq).limit(_PAGE)
        with self._storage.read() as connection:
            return [(row.seq, stored(row)) for row in connection.execute(page)]

    def _last(self) -> int:
        with self._storage.read() as connection:
            return _newest(connection)

    def _place_of(self, id_: str) -> tuple[int, bool]:
        """The number of a record, and whether it is there; if not, the number before the first that is younger."""
        with self._storage.read() as connection:
            known = select(func.max(activity_index.c.seq)).where(activity_index.c.id == id_)
            newer = select(func.max(activity.c.seq)).where(activity.c.seq > digested(connection), activity.c.id == id_)
            for place in (known, newer):
                if (seq := connection.execute(place).scalar()) is not None:
                    return int(seq), True
            younger = activity_index.c.timestamp >= _micros_of(id_)
            first = select(activity_index.c.seq).where(younger).order_by(activity_index.c.timestamp).limit(1)
            seq = connection.execute(first).scalar()
            return (int(seq) - 1 if seq is not None else digested(connection)), False


def _newest(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.max(activity.c.seq), 0))).scalar_one())


def _micros_of(id_: str) -> int:
    try:
        return ULID.from_str(id_).milliseconds * 1000
    except ValueError as error:
        raise BadFilter("Last-Event-ID", id_, "the id of a record") from error
