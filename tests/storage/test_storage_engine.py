"""Opening the storage: what is created, what is refused, and in which words."""

import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from mcpproxy.catalog.tables import tool_lists
from mcpproxy.storage.engine import Storage, open_storage
from mcpproxy.storage.errors import (
    StorageDamaged,
    StorageError,
    StorageLocked,
    StorageUnreadable,
    StorageUnwritable,
)

ROW = {"server": "files", "identity": "i", "listing": "[]", "listed_at": 1}


def pragma(storage: Storage, name: str) -> object:
    with storage.engine.connect() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


def test_what_was_written_is_there_after_a_restart(storage_setting: str, tmp_path: Path) -> None:
    first = open_storage(storage_setting, tmp_path)
    with first.write() as connection:
        connection.execute(insert(tool_lists), [ROW])
    first.close()
    second = open_storage(storage_setting, tmp_path)
    with second.read() as connection:
        assert [dict(row) for row in connection.execute(select(tool_lists)).mappings()] == [ROW]
    second.close()


def test_an_error_leaves_no_trace_of_the_transaction(storage_setting: str, tmp_path: Path) -> None:
    storage = open_storage(storage_setting, tmp_path)
    with pytest.raises(ZeroDivisionError), storage.write() as connection:
        connection.execute(insert(tool_lists), [ROW])
        _ = 1 / 0
    with storage.read() as connection:
        assert connection.execute(select(tool_lists)).all() == []
    storage.close()


def test_replicas_that_start_together_migrate_once(storage_setting: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: open_storage(storage_setting, tmp_path), range(8)))
    with opened[0].read() as connection:
        assert len(connection.execute(text("SELECT version_num FROM alembic_version")).all()) == 1
    for storage in opened:
        storage.close()


def test_a_database_of_a_later_version_is_refused(storage_setting: str, tmp_path: Path) -> None:
    storage = open_storage(storage_setting, tmp_path)
    with storage.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    storage.close()
    with pytest.raises(StorageUnreadable, match=r"later mcpproxy \(revision 9999.*Update mcpproxy"):
        open_storage(storage_setting, tmp_path)


def test_reading_an_outdated_database_says_who_brings_it_up_to_date(storage_setting: str, tmp_path: Path) -> None:
    storage = open_storage(storage_setting, tmp_path)
    with storage.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    storage.close()
    with pytest.raises(StorageUnreadable, match=r"earlier version.*mcpproxy serve"):
        open_storage(storage_setting, tmp_path, read_only=True)


def test_a_read_only_opening_reads_beside_a_writer_and_never_writes(storage_setting: str, tmp_path: Path) -> None:
    writer = open_storage(storage_setting, tmp_path)
    reader = open_storage(storage_setting, tmp_path, read_only=True)
    with writer.write() as connection:
        connection.execute(insert(tool_lists), [ROW])
        with reader.read() as other:
            assert other.execute(select(tool_lists)).all() == []
    with reader.read() as connection:
        assert len(connection.execute(select(tool_lists)).all()) == 1
    with pytest.raises(StorageUnwritable, match="cannot be written"), reader.write() as connection:
        connection.execute(insert(tool_lists), [ROW | {"server": "other"}])
    writer.close()
    reader.close()


def test_a_read_only_opening_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(StorageUnreadable, match=r"no database at .*mcpproxy serve"):
        open_storage("sqlite", tmp_path / "absent", read_only=True)
    assert not (tmp_path / "absent").exists()


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "data" / "mcpproxy.db").touch(mode=0o644)
    storage = open_storage("sqlite", tmp_path / "data")
    with storage.write() as connection:
        connection.execute(insert(tool_lists), [ROW])
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "data").glob("mcpproxy.db*")}
    assert modes == dict.fromkeys(("mcpproxy.db", "mcpproxy.db-wal", "mcpproxy.db-shm"), 0o600)
    storage.close()


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
def test_sqlite_syncs_as_durability_says(durability: str, synchronous: int, tmp_path: Path) -> None:
    storage = open_storage("sqlite", tmp_path, durability)  # type: ignore[arg-type]
    assert pragma(storage, "journal_mode") == "wal"
    assert pragma(storage, "foreign_keys") == 1
    assert pragma(storage, "auto_vacuum") == 2
    assert pragma(storage, "synchronous") == synchronous
    with storage.engine.connect() as connection:
        storage.set_durability(connection.connection.driver_connection, "power")
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    storage.close()


def test_power_durability_overrules_a_lax_server(postgres_url: str, tmp_path: Path) -> None:
    lax = f"{postgres_url}&options=-csynchronous_commit%3Doff"
    storage = open_storage(lax, tmp_path, "power")
    with storage.engine.connect() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
        connection.rollback()
        storage.set_durability(connection.connection.driver_connection, "process")
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "off"
    storage.close()


def test_a_data_dir_with_odd_characters_works(tmp_path: Path) -> None:
    odd = tmp_path / "a b?c#d%20é"
    storage = open_storage("sqlite", odd)
    reader = open_storage("sqlite", odd, read_only=True)
    assert (odd / "mcpproxy.db").exists()
    reader.close()
    storage.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "mcpproxy.db").write_bytes(b"This is not a database at all. " * 100)
    with pytest.raises(StorageUnreadable, match=r"mcpproxy\.db cannot be read \(file is not a database\)"):
        open_storage("sqlite", tmp_path)


def test_a_data_dir_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(StorageUnreadable, match="cannot be opened"):
        open_storage("sqlite", tmp_path / "data")


def test_a_locked_database_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpproxy.storage.engine.BUSY_TIMEOUT_MS", 50)
    storage = open_storage("sqlite", tmp_path)
    other = sqlite3.connect(tmp_path / "mcpproxy.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageLocked, match="locked by another process"), storage.write():
        pass
    other.close()
    storage.close()


def test_what_is_there_can_be_read_while_another_process_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.storage.engine.BUSY_TIMEOUT_MS", 50)
    storage = open_storage("sqlite", tmp_path)
    storage.close()  # so that the connections below are new ones
    with closing(sqlite3.connect(tmp_path / "mcpproxy.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with storage.read() as one, storage.read() as two:
            assert one.execute(select(tool_lists)).all() == two.execute(select(tool_lists)).all() == []
    storage.close()


def test_a_file_that_was_emptied_is_no_new_database(tmp_path: Path) -> None:
    open_storage("sqlite", tmp_path).close()
    (tmp_path / "activity-signing.pub").write_text("made with the first record")
    (tmp_path / "mcpproxy.db").write_bytes(b"")
    for read_only in (False, True):
        with pytest.raises(StorageDamaged, match=r"is empty, although it held records before.*Put a backup"):
            open_storage("sqlite", tmp_path, read_only=read_only)
    assert (tmp_path / "mcpproxy.db").read_bytes() == b""
    (tmp_path / "mcpproxy.db").unlink()
    open_storage("sqlite", tmp_path).close()


def test_the_tables_are_in_the_file_itself_once_they_are_made(tmp_path: Path) -> None:
    storage = open_storage("sqlite", tmp_path)
    shutil.copy(tmp_path / "mcpproxy.db", tmp_path / "alone.db")
    with closing(sqlite3.connect(tmp_path / "alone.db")) as alone:
        assert alone.execute("SELECT COUNT(*) FROM activity").fetchone() == (0,)
    storage.close()


def test_no_connection_is_opened_beside_a_removed_file(tmp_path: Path) -> None:
    storage = open_storage("sqlite", tmp_path)
    with storage.read() as one:
        one.execute(select(tool_lists)).all()
        (tmp_path / "mcpproxy.db-wal").unlink()
        with pytest.raises(StorageUnwritable, match=r"mcpproxy\.db-wal was removed while"), storage.read():
            pass
    storage.close()
    with storage.read() as again:
        assert again.execute(select(tool_lists)).all() == []
    storage.close()


def test_an_absent_server_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StorageUnreadable, match="does not answer") as caught:
        open_storage("postgresql://me:hunter2@127.0.0.1:1/log", tmp_path)
    assert "127.0.0.1:1/log" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("setting", ["mysql://x", "postgresql://host:port/db", ""])
def test_an_unknown_setting_says_what_is_allowed(setting: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="postgresql://"):
        open_storage(setting, tmp_path)


def test_a_start_on_an_up_to_date_database_does_not_load_alembic(tmp_path: Path) -> None:
    open_storage("sqlite", tmp_path).close()
    code = (
        "import sys, pathlib\n"
        "from mcpproxy.storage.engine import open_storage\n"
        "open_storage('sqlite', pathlib.Path(sys.argv[1])).close()\n"
        "print(sorted({'alembic', 'mako', 'psycopg', 'mcp'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"
