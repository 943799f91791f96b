"""How does a record become durable? One thread takes all that wait at the same moment and commits them together."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from msgspec import Struct
from msgspec.json import encode

from mcpproxy.activity import succession
from mcpproxy.activity.chain import Kind, Signer, Statement, link
from mcpproxy.activity.jobs import Job, apart, records_alone
from mcpproxy.activity.lease import FileLease, Lease, SessionLease
from mcpproxy.activity.ledger import Ledger, Tail, row_of
from mcpproxy.activity.prepare import Kept, Mask, keep, prepare
from mcpproxy.activity.record import Record, now, to_micros
from mcpproxy.activity.relief import Relief
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import StorageError, StorageReadOnly

log = logging.getLogger(__name__)

MOST_JOBS_PER_COMMIT: Final = 256
# Long enough that a caller in a tight loop seldom waits behind the digest, short beside a person's patience.
QUIET_SECONDS: Final = 0.05
MANY_UNDIGESTED: Final = 2000
"""From here on a gap between two commits is quiet enough."""
MOST_UNDIGESTED: Final = 10_000
"""From here on calls have to wait for it. Queries pass over as many rows one by one, in some tens of milliseconds."""
DIGEST_ROWS: Final = 1024
"""Calls wait meanwhile, for some milliseconds; smaller pieces would take half as long again in all."""
MOST_UNSIGNED: Final = 1000
UNSIGNED_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 1.0
GAP_SECONDS: Final = 0.01
SLOW_SECONDS: Final = 0.02
"""A commit that took longer shows a busy disk: for a while the event loop leaves commits to the thread."""
SLOW_PAUSE_SECONDS: Final = 0.5
SAY_SECONDS: Final = 600.0


Answer = Callable[[list[Job], Exception | None], None]


class _State(Struct, frozen=True):
    """What a transaction changes here, and a failed one must not."""

    tail: Tail = Tail()
    undigested: int = 1  # not none, so that the first quiet moment looks at what an earlier run left
    unsigned: int = 0
    head: Statement | None = None


class Writer:
    """One chain, from the start of this process to its stop.

    Everything here runs in the writer's thread, but for `serve_now`; whoever has the turn is alone here.
    """

    def __init__(
        self, storage: Storage, data_dir: Path, settings: Callable[[], Activity], mask: Mask, answer: Answer
    ) -> None:
        self.ledger = Ledger(storage)
        self.signer = Signer.load(data_dir)
        self.lease: Lease = FileLease(data_dir) if storage.dialect == "sqlite" else SessionLease()
        self.name = ""
        self.in_hand: list[Job | None] = []
        self.asleep = False
        """The thread waits for a word, not for a time."""
        self._turn = threading.Lock()
        self.relief = Relief(storage, self.ledger, self._turn)
        self._busy_at = self._quick_from = 0.0
        self._storage = storage
        self._settings = settings
        self._mask = mask
        self._answer = answer
        self._state = _State()
        self._signed_at = time.monotonic()
        self._said_at = float("-inf")
        self._retry_at = 0.0

    @property
    def head(self) -> Statement | None:
        """The last signed word on how far this chain goes."""
        return self._state.head

    def start(self) -> None:
        """Begin a chain, and put on record what earlier runs left open."""
        self._in_transaction(lambda: None)

    def run(self, jobs: SimpleQueue[Job | None]) -> None:
        """Serve jobs until the last one; None only says that there is something to keep in order."""
        while True:
            self.in_hand = []
            with contextlib.suppress(Empty):
                self.in_hand.append(jobs.get(timeout=self._patience()))
            while len(self.in_hand) < MOST_JOBS_PER_COMMIT and not jobs.empty():
                self.in_hand.append(jobs.get())
            batch = [job for job in self.in_hand if job is not None]
            with self._turn:
                for part in apart(batch):
                    self._serve(part)
                if batch and batch[-1].last:
                    self.ledger.drop()
                    break
                self._keep_house()
            self.relief.give()
        self.relief.close()
        self.lease.release()

    def serve_now(self, batch: list[Job]) -> bool:
        """Commit records in the event loop, unless the thread has the turn or something may have to be waited for.

        A commit takes less time than waking a thread and being woken by it. Raises where a commit failed; what failed
        before that is left to the thread, which finds out whose fault it is.
        """
        began = time.monotonic()
        if began < self._quick_from or not self._turn.acquire(blocking=False):
            return False
        try:
            if not self.ledger.is_quick(self._settings()):
                return False
            records = records_alone(batch)
            if records and not self._signature_is_due():
                done = self._append_at_once(records)
            else:
                done = self._serve_at_once(batch)
            if not done:
                return False
            self._busy_at = time.monotonic()
            if self._busy_at - began > SLOW_SECONDS:
                self._quick_from = self._busy_at + SLOW_PAUSE_SECONDS
            return True
        finally:
            self._turn.release()

    def _append_at_once(self, records: list[Record]) -> bool:
        try:
            rows, state = self._linked(self._prepared(records))
            if not self.ledger.append_at_once(rows):
                return False
        except sqlite3.OperationalError as error:
            # Only a new connection can tell whether it took place.
            self.ledger.drop()
            raise self._storage.explain(error) from error
        except Exception:
            return False
        self._state = state
        return True

    def _serve_at_once(self, batch: list[Job]) -> bool:
        if any(job.task is not None or job.last for job in batch) or not self.ledger.begin_at_once():
            return False
        try:
            self._commit(lambda: self._write(batch))
        except Exception as error:
            if self.ledger.connection is not None:
                return False
            raise self._storage.explain(error) from error
        return True

    def append(self, records: list[Record]) -> None:
        """Add records to the chain, inside a transaction."""
        self.append_kept(self._prepared(records))

    def append_kept(self, records: list[Kept]) -> None:
        """Add prepared records to the chain, inside a transaction."""
        if records:
            rows, state = self._linked(records)
            self.ledger.append(rows)
            self._state = state

    def _prepared(self, records: list[Record]) -> list[Kept]:
        limit = self._settings().max_payload_bytes
        first = self._state.tail.position + 1
        return [prepare(each, self.name, first + n, limit, self._mask) for n, each in enumerate(records)]

    def _linked(self, records: list[Kept]) -> tuple[list[tuple[Any, ...]], _State]:
        """The rows that follow on the chain's end, and what holds once they are there."""
        state = self._state
        previous, rows = state.tail.hash, []
        for kept in records:
            current = link(kept.record, previous)
            rows.append(row_of(kept, previous, current))
            previous = current
        tail = Tail(records[-1].record.position, previous)
        return rows, _State(tail, state.undigested + len(rows), state.unsigned + len(rows), state.head)

    # One transaction

    def _serve(self, batch: list[Job]) -> None:
        self._busy_at = time.monotonic()
        try:
            self._in_transaction(lambda: self._do(batch))
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, StorageError):
                # One of them is at fault, and the others must not pay for it.
                for job in batch:
                    self._serve([job])
            else:
                self._answer(batch, error)
        else:
            self._answer(batch, None)

    def _do(self, batch: list[Job]) -> None:
        if batch[0].last:
            self._finish()
        elif batch[0].task is not None:
            batch[0].result = batch[0].task(self)
        else:
            self._write(batch)

    def _write(self, batch: list[Job]) -> None:
        opens = [self._open_row(job.opens) for job in batch if job.opens is not None]
        if opens:
            self.ledger.open_calls(opens)
        closes = [job.closes for job in batch if job.closes is not None]
        if closes:
            self.ledger.close_calls(closes)
        self.append([record for job in batch for record in job.records])
        if self._state.unsigned and self._signature_is_due():
            self._sign("head")

    def _open_row(self, record: Record) -> tuple[str, str, str]:
        kept = prepare(record, self.name, 0, self._settings().max_payload_bytes, self._mask)
        return record.id, self.name, encode(kept.record).decode()

    def _in_transaction(self, act: Callable[[], None]) -> None:
        """Do it and commit; after an error everything, the chain included, is as it was."""
        try:
            self._begin()
            self._commit(act)
        except Exception as error:
            explained = self._storage.explain(error)
            if isinstance(explained, StorageReadOnly):
                self.ledger.drop()  # it was opened for reading, and would stay so when the file may be written again
            if explained is error:
                raise
            raise explained from error

    def _begin(self) -> None:
        """Begin a transaction, on a new connection where the old one was cut while nobody needed it."""
        try:
            if not self.ledger.connect(self._settings()):
                try:
                    self.ledger.begin()
                except Exception:
                    if self._storage.dialect == "sqlite":
                        raise
                    self.ledger.drop()
                    self.ledger.connect(self._settings())
                else:
                    return
            self._resume()
            self.ledger.begin()
        except BaseException:
            self.ledger.drop()
            raise

    def _commit(self, act: Callable[[], None]) -> None:
        before, committing = self._state, False
        try:
            act()
            committing = True
            self.ledger.commit()
        except BaseException:
            # After a failed commit only a new connection can tell whether it took place.
            if committing or not self.ledger.rollback():
                self.ledger.drop()
            self._state = before
            raise
        head = self._state.head
        if head is not None and head is not before.head:
            self.lease.note(head)

    def _resume(self) -> None:
        """Take up the chain on a new connection, or begin one where it cannot go on."""
        name, state = self.name, self._state
        try:
            self.ledger.begin()
            if name and succession.is_still_ours(self.ledger, self.lease, name):
                self._state = _State(self.ledger.tail(name), unsigned=1, head=state.head)
            else:
                self.name = succession.begin_chain(self.ledger, self.lease, self.signer)
                self._state = _State()
            self.bury_the_dead()
            succession.complain_of_losses(self.ledger, self.lease)
            self.ledger.commit()
        except BaseException:
            self.name, self._state = name, state
            raise

    def bury_the_dead(self) -> None:
        """Put on record as interrupted what writers that are no more left open, and close their chains."""
        for writer in succession.dead_writers(self.ledger, self.lease, self.name):
            self._interrupt_open_calls(writer)
            succession.end_chain(self.ledger, self.lease, self.signer, writer)

    def _interrupt_open_calls(self, writer: str) -> None:
        first = self._state.tail.position + 1
        self.append_kept([keep(each) for each in succession.take_open_calls(self.ledger, writer, self.name, first)])

    def _finish(self) -> None:
        self._interrupt_open_calls(self.name)
        self.ledger.digest(DIGEST_ROWS)
        self._sign("end")
        self.ledger.withdraw(self.name, "head")

    # Between transactions

    def _patience(self) -> float | None:
        """How long the thread waits for a job before it looks whether there is something to keep in order."""
        self.asleep = True  # before the look: what comes after it must wake the thread
        if not self._is_untidy():
            return None
        self.asleep = False
        due = GAP_SECONDS if self._state.undigested >= MANY_UNDIGESTED else QUIET_SECONDS
        return max(due, self._retry_at - time.monotonic())

    def _is_untidy(self) -> bool:
        return bool(self._state.undigested or self._state.unsigned)

    def _keep_house(self) -> None:
        """Put in order what the commits left, in a quiet moment or when it has become much."""
        moment, undigested = time.monotonic(), self._state.undigested
        idle = moment - self._busy_at
        quiet = idle >= QUIET_SECONDS
        gap = undigested >= MANY_UNDIGESTED and idle >= GAP_SECONDS
        due = gap or undigested >= MOST_UNDIGESTED or (quiet and self._is_untidy())
        if moment < self._retry_at or not due:
            return
        try:
            self._in_transaction(lambda: self._digest_and_sign(quiet=quiet))
        except Exception as error:  # what must not fail on this is served by _serve; here it is only put off
            log.warning("the activity log cannot be kept in order: %s", error)
            self._retry_at = time.monotonic() + RETRY_SECONDS

    def _digest_and_sign(self, *, quiet: bool) -> None:
        done = self.ledger.digest(DIGEST_ROWS)
        state = self._state
        left = max(state.undigested - done, 1) if done == DIGEST_ROWS else 0
        self._state = _State(state.tail, left, state.unsigned, state.head)
        if state.unsigned and (quiet or self._signature_is_due()):
            self._sign("head")

    def _signature_is_due(self) -> bool:
        return self._state.unsigned >= MOST_UNSIGNED or time.monotonic() - self._signed_at >= UNSIGNED_SECONDS

    def _sign(self, kind: Kind) -> None:
        state = self._state
        head = self.signer.sign(kind, self.name, state.tail.position, state.tail.hash, to_micros(now()))
        self.ledger.state(head)
        self._state = _State(state.tail, state.undigested, 0, head)
        self._signed_at = time.monotonic()
        if kind == "end" or self._signed_at - self._said_at >= SAY_SECONDS:
            # Kept with the logs, away from this machine, it proves a cut tail even against the key's owner.
            self._said_at = self._signed_at
            log.info("activity chain %s goes to position %d with hash %s", head.writer, head.position, head.hash.hex())
