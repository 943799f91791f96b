"""What gathers beside the database is moved into it, whatever becomes of the files and of the thread that does it."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.support.children import until

from mcpproxy.activity import relief, writer
from mcpproxy.activity.chain import public_key_in
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record
from mcpproxy.activity.verify import verify
from mcpproxy.storage.engine import Storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("setting", ["sqlite"], indirect=True)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(relief, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(relief, "MUCH_BESIDE", 1)


async def moved(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return when something was moved, by a connection that is kept, and nobody moves more."""
    own = journal._writer.relief
    await until(lambda: own._kept is not None)
    with monkeypatch.context() as context:
        context.setattr(relief, "MUCH_BESIDE", 1 << 60)
        for _ in range(2):  # before the second the thread has looked for the last time
            await journal.run(lambda _: None)
        await until(lambda: not own._is_moving() and not journal._writer._is_untidy())


@pytest.mark.parametrize("removed", [("-wal",), ("-wal", "-shm")], ids=" ".join)
async def test_files_beside_that_are_removed_after_a_move_stop_no_record(
    running: Running,
    call: Make,
    storage: Storage,
    data_dir: Path,
    removed: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as journal:
        await journal.write(call())
        await moved(journal, monkeypatch)
        for ending in removed:
            Path(f"{storage.location}{ending}").unlink()
        await journal.run(lambda _: None)  # the writer's thread is the one that looks for them
        await journal.write(call())
        await moved(journal, monkeypatch)
    report = verify(storage, public_key_in(data_dir))
    assert report.ok and report.records == 2


async def test_where_no_thread_is_to_be_had_the_writer_moves_it_itself(
    running: Running, call: Make, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = threading.Thread.start, threading.Event()

    def start(thread: threading.Thread) -> None:
        if thread.name == "activity-relief":
            refused.set()
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    async with running() as journal:
        before = Path(storage.location).stat().st_size
        await journal.write(call(reason="because " * 5000))
        await until(lambda: refused.is_set() and Path(storage.location).stat().st_size > before)
        await journal.write(call())
        assert journal.stats().written == 2


async def test_a_connection_that_moves_nothing_is_replaced(
    running: Running, call: Make, storage: Storage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as journal:
        await journal.write(call())
        await moved(journal, monkeypatch)
        kept = journal._writer.relief._kept
        assert kept is not None and isinstance(kept.driver_connection, sqlite3.Connection)
        kept.driver_connection.close()  # as good as one that was opened while the file could only be read
        before = Path(storage.location).stat().st_size
        async with asyncio.timeout(30):
            while Path(storage.location).stat().st_size == before:
                await journal.write(call(reason="because " * 5000))
                await asyncio.sleep(0.01)
    assert caplog.text.count("the file beside the database grows") == 1
