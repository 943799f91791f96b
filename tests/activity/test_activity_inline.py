"""Where a record is committed: in the event loop while that is quick, in the writer's thread otherwise."""

import asyncio
import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.support.children import until

from mcpproxy.activity import ledger, relief, writer
from mcpproxy.activity.chain import public_key_in
from mcpproxy.activity.jobs import Job
from mcpproxy.activity.journal import Journal, RecordFailed
from mcpproxy.activity.record import Record
from mcpproxy.activity.verify import verify
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]
SQLITE = pytest.mark.parametrize("setting", ["sqlite"], indirect=True)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which records were committed."""
    seen: list[str] = []
    write, append_at_once = writer.Writer._write, ledger.Ledger.append_at_once

    def noted(self: writer.Writer, batch: list[Job]) -> None:
        seen.append(threading.current_thread().name)
        write(self, batch)

    def noted_at_once(self: ledger.Ledger, rows: list[tuple[Any, ...]]) -> bool:
        done = append_at_once(self, rows)
        seen.extend([threading.current_thread().name] if done else [])
        return done

    monkeypatch.setattr(writer.Writer, "_write", noted)
    monkeypatch.setattr(ledger.Ledger, "append_at_once", noted_at_once)
    return seen


@SQLITE
@pytest.mark.anyio
async def test_a_quick_commit_is_made_in_the_event_loop(
    running: Running, call: Make, places: list[str], storage: Storage, data_dir: Path
) -> None:
    async with running() as journal:
        await asyncio.gather(*(journal.write(call()) for _ in range(20)))
        await journal.open_call(record := call())
        await journal.close_call(record)
    assert set(places) == {"MainThread"}
    assert len(places) < 22, "what comes in one turn of the loop shares a commit"
    report = verify(storage, public_key_in(data_dir))
    assert report.ok and [chain.records for chain in report.chains] == [21]


@SQLITE
@pytest.mark.anyio
async def test_a_commit_that_waits_for_the_disk_is_made_in_the_thread(
    running: Running, call: Make, places: list[str]
) -> None:
    async with running(lambda: Activity(durability="power")) as journal:
        await journal.write(call())
    assert places == ["activity-writer"]


@pytest.mark.parametrize("setting", ["postgresql"], indirect=True)
@pytest.mark.anyio
async def test_a_commit_that_waits_for_the_network_is_made_in_the_thread(
    running: Running, call: Make, places: list[str]
) -> None:
    async with running() as journal:
        await journal.write(call())
    assert places == ["activity-writer"]


@SQLITE
@pytest.mark.anyio
async def test_the_loop_goes_on_while_another_process_writes(
    running: Running, call: Make, places: list[str], storage: Storage
) -> None:
    async with running() as journal:
        with closing(sqlite3.connect(storage.location, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.create_task(journal.write(call()))
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert not writing.done()
            other.execute("ROLLBACK")
        await writing
    assert places == ["activity-writer"]


@SQLITE
@pytest.mark.anyio
async def test_after_a_slow_commit_the_thread_makes_the_next_ones(
    running: Running, call: Make, places: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SLOW_SECONDS", -1.0)
    monkeypatch.setattr(writer, "SLOW_PAUSE_SECONDS", 60.0)
    async with running() as journal:
        await journal.write(call())
        await journal.write(call())
    assert places == ["MainThread", "activity-writer"]


@SQLITE
@pytest.mark.anyio
async def test_a_commit_in_the_loop_that_fails_is_said_and_the_chain_goes_on(
    running: Running, call: Make, storage: Storage, data_dir: Path
) -> None:
    async with running() as journal:
        await journal.write(call())
        journal._writer.ledger.execute("PRAGMA query_only=1")  # as if the disk took nothing
        with pytest.raises(RecordFailed):
            await journal.write(call())
        await journal.write(call())
    report = verify(storage, public_key_in(data_dir))
    assert report.ok and [chain.records for chain in report.chains] == [2]


@SQLITE
@pytest.mark.anyio
async def test_what_gathers_beside_the_database_is_moved_into_it(
    running: Running, call: Make, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relief, "MUCH_BESIDE", 100_000)
    monkeypatch.setattr(relief, "PAUSE_SECONDS", 0.0)
    beside = Path(f"{storage.location}-wal")
    async with running() as journal:
        for _ in range(12):
            await asyncio.gather(*(journal.write(call(reason="because " * 60)) for _ in range(200)))
            await until(lambda: not journal._writer._is_untidy())
        assert beside.stat().st_size < Path(storage.location).stat().st_size / 2
    storage.close()
    assert not beside.exists()  # nobody has kept a connection


@SQLITE
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("written", "idle", "digested"),
    [(30, -60.0, False), (30, 0.02, True), (5, 0.02, False), (60, -60.0, True)],
    ids=["busy", "in a gap", "a gap, but few", "busy, but far behind"],
)
async def test_under_load_the_index_waits_for_a_gap_until_it_is_far_behind(
    running: Running, call: Make, monkeypatch: pytest.MonkeyPatch, written: int, idle: float, digested: bool
) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 3600.0)  # so that the thread sleeps
    async with running() as journal:
        for _ in range(written):
            await journal.write(call())
        monkeypatch.setattr(writer, "MANY_UNDIGESTED", 10)
        monkeypatch.setattr(writer, "MOST_UNDIGESTED", 50)
        with journal._writer._turn:
            journal._writer._busy_at = time.monotonic() - idle
            journal._writer._keep_house()
        assert (journal._writer._state.undigested == 0) == digested


@SQLITE
@pytest.mark.anyio
async def test_large_payloads_are_looked_after_before_there_are_many_records(
    running: Running, call: Make, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(relief, "MUCH_BESIDE", 100_000)
    async with running() as journal:
        before = Path(storage.location).stat().st_size
        monkeypatch.setattr(journal._writer, "_keep_house", lambda: None)
        for _ in range(10):
            await journal.write(call(reason="because " * 5000))
        await until(lambda: Path(storage.location).stat().st_size > before + 100_000)


@SQLITE
@pytest.mark.anyio
async def test_records_go_on_while_the_disk_takes_what_has_gathered(
    running: Running, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(relief, "MUCH_BESIDE", 1)
    begun, synced, held = threading.Event(), threading.Event(), os.fsync

    def fsync(descriptor: int) -> None:
        held(descriptor)
        if not begun.is_set() and threading.current_thread().name == "activity-relief":
            begun.set()
            assert synced.wait(30)

    monkeypatch.setattr(os, "fsync", fsync)
    async with running() as journal:
        await journal.write(call())
        await asyncio.to_thread(begun.wait, 30)
        try:
            async with asyncio.timeout(10):
                await journal.write(call())
                await journal.run(lambda _: None)  # nor does the writer's thread wait
        finally:
            synced.set()
        assert journal.stats().written == 2


@SQLITE
@pytest.mark.anyio
async def test_readers_that_follow_each_other_do_not_keep_the_file_beside_growing(
    running: Running, call: Make, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(relief, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(relief, "MUCH_BESIDE", 200_000)
    beside, stopping = Path(f"{storage.location}-wal"), threading.Event()

    taking_over = [threading.Event(), threading.Event()]

    def read(mine: int) -> None:
        """Begin before the other ends, so that there is never nobody who reads."""
        while not stopping.is_set():
            with storage.read() as connection:
                connection.execute(text("SELECT COUNT(*) FROM activity")).scalar_one()
                taking_over[1 - mine].set()
                taking_over[mine].wait(5)
                taking_over[mine].clear()

    sizes: list[int] = []
    async with running() as journal:
        await journal.write(call())
        readers = [threading.Thread(target=read, args=(mine,)) for mine in (0, 1)]
        for reader in readers:
            reader.start()
        try:
            async with asyncio.timeout(30):
                while len(sizes) < 2 or sizes[-1] >= sizes[-2]:  # it was never begun anew
                    await asyncio.gather(*(journal.write(call(reason="because " * 60)) for _ in range(50)))
                    sizes.append(beside.stat().st_size)
        finally:
            stopping.set()
            for event in taking_over:
                event.set()
            for reader in readers:
                reader.join()


@SQLITE
@pytest.mark.anyio
async def test_a_directory_that_cannot_be_looked_into_does_not_end_the_writer(
    running: Running, call: Make, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat

    def stat(path: Any, **more: Any) -> Any:
        if str(path).endswith("-wal"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, **more)

    async with running() as journal:
        await journal.write(call())
        monkeypatch.setattr(os, "stat", stat)
        assert journal._writer.relief.gathered() == 0
        monkeypatch.setattr(os, "stat", real)
        await journal.write(call())


@SQLITE
@pytest.mark.anyio
async def test_where_the_disk_does_not_take_it_records_stay_safe_beside(
    running: Running,
    call: Make,
    storage: Storage,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(relief, "MUCH_BESIDE", 1)
    monkeypatch.setattr(relief, "PAUSE_SECONDS", 0.0)

    def fsync(descriptor: int) -> None:
        if threading.current_thread().name == "activity-relief":
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    async with running() as journal:
        await journal.write(call())
        tries, written = {0.0}, 1
        async with asyncio.timeout(20):
            while len(tries) < 4:
                await journal.write(call())
                written += 1
                await asyncio.sleep(0.01)
                tries.add(journal._writer.relief._moved_at)
    assert verify(storage, public_key_in(data_dir)).records == written
    assert [line.levelname for line in caplog.records if "grows" in line.message].count("WARNING") == 1
