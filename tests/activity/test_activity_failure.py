"""When records cannot be written: calls are refused or the loss is counted, and it heals by itself."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select

from mcpproxy.activity.chain import KEY_FILE, Signer, public_key_in
from mcpproxy.activity.journal import Journal, RecordFailed
from mcpproxy.activity.record import Record
from mcpproxy.activity.tables import activity
from mcpproxy.activity.verify import verify
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage, open_storage
from mcpproxy.storage.errors import StorageUnreadable

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]

# These bring a database of their own; the fixtures' one need not vary.
ONE_RUN = pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
NOISE = b'"' + os.urandom(30_000).hex().encode() + b'"'


def count(storage: Storage) -> int:
    with storage.read() as connection:
        return int(connection.execute(select(func.count()).select_from(activity)).scalar_one())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def own_postgres(start_postgres: Callable[[Path], Any]) -> Iterator[Any]:
    """A PostgreSQL of its own, which a test may stop and start."""
    server = start_postgres(Path(tempfile.mkdtemp(prefix="mcpproxy-pg-stop-")))
    yield server
    with server._lock:
        server.ensure_postgres_running()
    server.cleanup()


def stop(server: Any) -> None:
    commands: Any = import_module("pgserver._commands")
    commands.pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=server.pgdata, user=server.system_user)


@pytest.mark.anyio
@ONE_RUN
async def test_a_full_disk_refuses_calls_until_there_is_room_again(
    small_disk: Path, running: Running, call: Make
) -> None:
    ballast = small_disk / "ballast"
    data_dir = small_disk / "data"
    storage = open_storage("sqlite", data_dir)
    async with running(on=storage, at=data_dir) as journal:
        await journal.write(call())
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(4096))
        written = 1
        with pytest.raises(RecordFailed, match=r"cannot be put on record.*no room left.*Free disk space") as caught:
            for _ in range(100):
                await journal.write(call(response=NOISE))
                written += 1
        assert "no restart is needed" in str(caught.value)
        with pytest.raises(RecordFailed):
            await journal.open_call(call("delete_repo", response=NOISE))
        assert journal.stats().failure is not None
        assert journal.stats().lost == 0
        ballast.unlink()
        await journal.write(call())
        assert journal.stats().failure is None
    assert count(storage) == written + 1
    report = verify(storage, public_key_in(data_dir))
    assert report.ok, report.problems
    storage.close()


@pytest.mark.anyio
@ONE_RUN
async def test_with_allow_a_full_disk_lets_calls_pass_and_counts_the_loss(
    small_disk: Path, running: Running, call: Make, caplog: pytest.LogCaptureFixture
) -> None:
    ballast, data_dir = small_disk / "ballast", small_disk / "data"
    storage = open_storage("sqlite", data_dir)
    settings = [Activity(on_failure="allow")]
    async with running(lambda: settings[0], on=storage, at=data_dir) as journal:
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(4096))
        for _ in range(40):
            await journal.write(call(response=NOISE))
        stats = journal.stats()
        assert stats.lost > 0
        assert stats.lost + stats.written == 40
        assert caplog.text.count("records are being lost") == 1
        settings[0] = Activity(on_failure="refuse")
        with pytest.raises(RecordFailed):
            await journal.write(call(response=NOISE))
        ballast.unlink()
        await journal.write(call())
    assert count(storage) == stats.written + 1
    assert verify(storage, public_key_in(data_dir)).ok
    storage.close()


@pytest.mark.anyio
@ONE_RUN
async def test_a_stopped_postgresql_refuses_calls_until_it_is_back(
    own_postgres: Any, tmp_path: Path, running: Running, call: Make
) -> None:
    storage = open_storage(own_postgres.get_uri(), tmp_path)
    async with running(on=storage, at=tmp_path) as journal:
        opened = call("delete_repo", operation="destructive")
        await journal.open_call(opened)
        await journal.write(call())
        stop(own_postgres)
        for _ in range(3):
            with pytest.raises(RecordFailed, match="does not answer"):
                await journal.write(call())
        await asyncio.sleep(0.2)
        with own_postgres._lock:
            own_postgres.ensure_postgres_running()
        await journal.write(call())
        await journal.close_call(opened)
        stats = journal.stats()
        assert (stats.failure, stats.written) == (None, 3)
    assert count(storage) == 3
    report = verify(storage, public_key_in(tmp_path))
    assert report.ok, report.problems
    assert len(report.chains) == 1
    storage.close()


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_a_database_file_that_was_removed_is_noticed(
    running: Running, storage: Storage, data_dir: Path, call: Make
) -> None:
    async with running() as journal:
        await journal.write(call())
        files = list(data_dir.glob("mcpproxy.db*"))
        for file in files:
            file.rename(file.with_name(f"away-{file.name}"))
        with pytest.raises(RecordFailed, match="was removed while mcpproxy ran"):
            await journal.write(call())
        for file in files:
            file.with_name(f"away-{file.name}").rename(file)
        await journal.write(call())
    assert count(storage) == 2
    assert verify(storage, public_key_in(data_dir)).ok


@pytest.mark.anyio
@ONE_RUN
async def test_a_writer_that_was_taken_for_dead_begins_a_new_chain(
    postgres_url: str, tmp_path: Path, running: Running, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.writer.QUIET_SECONDS", 3600)
    storage = open_storage(postgres_url, tmp_path)
    async with running(on=storage, at=tmp_path) as journal:
        opened = call("delete_repo", operation="destructive")
        await journal.open_call(opened)
        # Its connection is cut, and another replica starts before it notices.
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        async with running(on=open_storage(postgres_url, tmp_path), at=tmp_path) as other:
            await other.write(call())
        await journal.write(call())
        await journal.close_call(opened)
    report = verify(storage, public_key_in(tmp_path))
    assert report.ok, report.problems
    assert sorted(chain.records for chain in report.chains) == [0, 2, 2]
    storage.close()


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_a_lock_held_by_another_process_refuses_calls_until_it_is_gone(
    running: Running, data_dir: Path, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.storage.engine.BUSY_TIMEOUT_MS", 30)
    storage = open_storage("sqlite", data_dir)
    async with running(on=storage) as journal:
        await journal.write(call())
        other = sqlite3.connect(data_dir / "mcpproxy.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(RecordFailed, match="locked by another process"):
                await journal.write(call())
        other.execute("ROLLBACK")
        other.close()
        await journal.write(call())
    report = verify(storage, public_key_in(data_dir))
    assert report.ok, report.problems
    assert [chain.records for chain in report.chains] == [2]
    storage.close()


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_in_a_database_that_was_put_back_from_a_backup_a_new_chain_begins(
    running: Running, storage: Storage, data_dir: Path, call: Make, migrated_file: Path
) -> None:
    async with running() as journal:
        await journal.write(call())
        storage.engine.dispose()
        for file in data_dir.glob("mcpproxy.db*"):
            file.unlink()
        shutil.copy(migrated_file, data_dir)
        await journal.write(call())
    report = verify(storage, public_key_in(data_dir))
    assert report.ok, report.problems
    assert [chain.records for chain in report.chains] == [1]


def test_a_damaged_signing_key_is_named(data_dir: Path) -> None:
    (data_dir / KEY_FILE).write_text("nonsense")
    with pytest.raises(StorageUnreadable, match=r"activity-signing\.key is damaged"):
        Signer.load(data_dir)
