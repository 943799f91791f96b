"""Is it on record yet? The journal's word, for those who may not answer before it is."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from msgspec import Struct

from mcpproxy.activity.chain import Statement
from mcpproxy.activity.jobs import Job
from mcpproxy.activity.ledger import MOST_ROWS_PER_STATEMENT
from mcpproxy.activity.record import Record
from mcpproxy.activity.writer import Writer
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage

log = logging.getLogger(__name__)

MOST_WAITING: Final = 10_000
GATHER_SECONDS: Final = 0.002
"""For so long a commit lets the next turn of the event loop bring more to it."""
_CLOSE_SECONDS: Final = 0.0003
_CLOSED: Final = "The activity log is closed."

Result = TypeVar("Result")


class RecordFailed(Exception):
    """A record was not written, and what it is about must not go on without."""


class JournalStats(Struct, frozen=True):
    """How the journal is doing."""

    written: int
    """Records committed by this process."""
    lost: int
    """Records that could not be written while `activity.on_failure` was `allow`."""
    waiting: int
    failure: str | None
    """Why the last attempt failed; None once one succeeded."""
    head: Statement | None
    """How far the chain goes, signed: kept elsewhere, it proves that nothing was cut off."""


class Journal:
    """Writes records durably. One per process; used from one event loop."""

    def __init__(
        self,
        storage: Storage,
        data_dir: Path,
        settings: Callable[[], Activity] = Activity,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._writer = Writer(storage, data_dir, settings, mask, self._answer)
        self._settings = settings
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._due: list[Job] = []
        """What was handed over since the last commit; it is committed together."""
        self._due_at = 0.0
        """When the first of it came."""
        self._seen = 0
        """How much of it was there a turn of the event loop ago."""
        self._listeners: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting = self._written = self._lost = 0
        self._failure: str | None = None
        self._dead: RecordFailed | None = None
        self._tried_at = 0.0
        self._alone = True
        """Whether the last commit was for one alone: then the next is not likely to have company."""

    async def start(self) -> None:
        """Begin this process's chain; what earlier ones left open goes on record as interrupted."""
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._writer.start)
        self._thread = threading.Thread(target=self._serve, name="activity-writer", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Write what waits, close the chain with a signed end, and let the thread go."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            await self._submit(Job(last=True))
        except Exception as error:
            log.warning("the activity log was not closed: %s", error)
        await asyncio.to_thread(thread.join)

    def write(self, *records: Record) -> Coroutine[Any, Any, None]:
        """Return when the records are committed, all of them or none."""
        return self._record(Job(records=records))

    def open_call(self, record: Record) -> Coroutine[Any, Any, None]:
        """Return when it is committed that this call is about to be made."""
        return self._record(Job(opens=record))

    def close_call(self, record: Record, *more: Record) -> Coroutine[Any, Any, None]:
        """Return when the outcome of an opened call, and what else belongs to it, is committed."""
        return self._record(Job(records=(record, *more), closes=record.id))

    async def run(self, task: Callable[[Writer], Result]) -> Result:
        """Do housekeeping in the writer's thread, in a transaction of its own."""
        if self._thread is None:
            raise RecordFailed(_CLOSED)
        job = Job(task=task)
        await self._submit(job)
        result: Result = job.result
        return result

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call this in the event loop after every commit that added records; gives what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def stats(self) -> JournalStats:
        """How the journal is doing."""
        return JournalStats(self._written, self._lost, self._waiting, self._failure, self._writer.head)

    async def _record(self, job: Job) -> None:
        if self._thread is None:
            self._fail(job, _CLOSED)
        elif self._waiting >= MOST_WAITING:
            self._fail(job, f"{self._waiting} records wait to be written already; try again in a moment.")
        else:
            try:
                await self._submit(job)
            except Exception as error:
                self._fail(job, str(error), error)

    def _fail(self, job: Job, reason: str, error: Exception | None = None) -> None:
        if self._settings().on_failure == "refuse":
            self._failure = reason
            raise RecordFailed(f"This cannot be put on record, and so is not done or answered. {reason}") from error
        if self._failure is None:
            log.error("records are being lost, as `activity.on_failure` allows: %s", reason)
        self._failure = reason
        self._lost += len(job.records)

    async def _submit(self, job: Job) -> None:
        assert self._loop is not None
        # Where the last commit was for one alone and is some time ago, nobody is there to share this one with.
        alone = self._alone and not self._due and time.perf_counter() - self._tried_at > _CLOSE_SECONDS
        if alone and self._is_served_now([job]):
            return
        job.future = self._loop.create_future()
        self._waiting += 1
        self._due.append(job)
        if len(self._due) == 1:
            self._due_at = time.perf_counter()
            self._loop.call_soon(self._flush)
        # A caller that is cancelled here does not take its record along: the writer has it.
        await job.future

    def _flush(self) -> None:
        """Commit what is due, once a turn of the event loop brought no more of it, or hand it to the thread.

        A commit costs as much as several records: where many callers are served, letting some gather makes all faster.
        """
        assert self._loop is not None
        due = len(self._due)
        more = self._seen < due < MOST_ROWS_PER_STATEMENT
        if more and not self._alone and time.perf_counter() - self._due_at < GATHER_SECONDS:
            self._seen = due
            self._loop.call_soon(self._flush)
            return
        batch, self._due, self._seen = self._due, [], 0
        self._alone = len(batch) == 1
        try:
            done = self._is_served_now(batch)
        except Exception as error:
            self._wake(batch, error)
            return
        if done:
            self._wake(batch, None)
        else:
            for job in batch:
                self._jobs.put(job)

    def _is_served_now(self, batch: list[Job]) -> bool:
        """Commit it in the event loop, where that costs less than the way to the writer's thread and back."""
        if self._dead is not None:
            raise self._dead
        done = self._writer.serve_now(batch)
        self._tried_at = time.perf_counter()
        if done:
            if self._writer.asleep:
                self._jobs.put(None)
            self._count(batch)
        return done

    def _serve(self) -> None:
        """The writer's thread. Should it ever end on its own, those who wait must not wait for ever."""
        try:
            self._writer.run(self._jobs)
        except BaseException as error:
            log.exception("the activity writer ended")
            self._thread, self._dead = None, RecordFailed(f"{_CLOSED} {error}")
            self._answer([job for job in self._writer.in_hand if job is not None], self._dead)
            self._loop_soon(self._give_up)

    def _give_up(self) -> None:
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None:
                self._resolve([job], self._dead)

    def _answer(self, batch: list[Job], error: Exception | None) -> None:
        self._loop_soon(self._resolve, batch, error)

    def _loop_soon(self, act: Callable[..., None], *given: Any) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(act, *given)
        except RuntimeError:
            log.debug("the event loop ended before everything was acknowledged")

    def _resolve(self, batch: list[Job], error: Exception | None) -> None:
        self._wake(batch, error)
        if error is None:
            self._count(batch)

    def _wake(self, batch: list[Job], error: Exception | None) -> None:
        self._waiting -= len(batch)
        for job in batch:
            if job.future.done():
                continue
            if error is None:
                job.future.set_result(None)
            else:
                job.future.set_exception(error)

    def _count(self, batch: list[Job]) -> None:
        self._failure = None
        added = sum(len(job.records) for job in batch)
        self._written += added
        for listener in self._listeners if added else ():
            listener()
