"""Whatever is damaged, salvage ends, invents nothing, and loses little more than what was on the damaged pages."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from mcpproxy.catalog.tables import trust_history
from mcpproxy.storage.engine import open_storage
from mcpproxy.storage.errors import StorageDamaged, StorageUnreadable
from mcpproxy.storage.salvage import Saved, salvage

ROWS = 2000
PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a table of many rows in it."""
    folder = tmp_path_factory.mktemp("sound")
    storage = open_storage("sqlite", folder)
    with storage.write() as connection:
        rows = [
            {"at": n, "server": f"server {n}", "identity_key": "k" * 100, "event": "approved", "by": "ada"}
            for n in range(ROWS)
        ]
        connection.execute(insert(trust_history), rows)
    storage.close()
    return folder / "mcpproxy.db"


def saved_from(path: Path, folder: Path) -> tuple[Saved, set[tuple[int, str]]]:
    storage = open_storage("sqlite", folder)
    try:
        (saved,) = salvage(path, storage, [trust_history])
        with storage.read() as connection:
            rows = connection.execute(select(trust_history.c.at, trust_history.c.server)).all()
        return saved, {(at, server) for at, server in rows}
    finally:
        storage.close()


def written() -> set[tuple[int, str]]:
    return {(n, f"server {n}") for n in range(ROWS)}


def test_everything_is_saved_of_a_sound_database(sound: Path, tmp_path: Path) -> None:
    saved, rows = saved_from(sound, tmp_path / "new")
    assert (saved.rows, saved.gaps) == (ROWS, 0)
    assert rows == written()


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_cost_the_rows_around_them(sound: Path, tmp_path: Path, seed: int) -> None:
    damaged = tmp_path / "mcpproxy.db"
    shutil.copy(sound, damaged)
    chance = random.Random(seed)
    data = bytearray(damaged.read_bytes())
    # Behind the pages that say which tables there are: without those nothing is found.
    places = chance.sample(range(40 * PAGE, len(data)), 3)
    for place in places:
        data[place] ^= chance.randrange(1, 256)
    damaged.write_bytes(data)
    saved, rows = saved_from(damaged, tmp_path / "new")
    assert saved.rows <= ROWS
    per_page = PAGE // 120
    assert len(rows & written()) >= ROWS - 3 * per_page


def test_a_damaged_page_in_the_middle_is_one_gap(sound: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "mcpproxy.db"
    data = bytearray(sound.read_bytes())
    page = data.find(b"server 1000" + b"k" * 100) // PAGE * PAGE  # in the table, not in its index
    data[page : page + PAGE] = bytes(PAGE)
    damaged.write_bytes(data)
    saved, rows = saved_from(damaged, tmp_path / "new")
    assert saved.gaps == 1
    assert rows < written()
    lost = sorted(number for number, _ in written() - rows)
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert 1000 in lost


def test_what_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    damaged = tmp_path / "mcpproxy.db"
    damaged.write_bytes(b"This is not a database at all. " * 100)
    with pytest.raises(StorageDamaged, match="cannot be read"):
        saved_from(damaged, tmp_path / "new")
    with pytest.raises(StorageUnreadable, match="cannot be opened"):
        saved_from(tmp_path / "absent", tmp_path / "newer")


def test_an_older_table_is_saved_with_the_columns_that_it_has(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as old, old:
        old.execute("CREATE TABLE trust_history (seq INTEGER PRIMARY KEY, at, server, identity_key, event, by)")
        old.execute("INSERT INTO trust_history VALUES (1, 5, 'a', 'k', 'approved', 'ada')")
        old.execute("INSERT INTO trust_history VALUES (2, 'not a time', 'b', 'k', 'approved', 'ada')")
    saved, rows = saved_from(tmp_path / "old.db", tmp_path / "new")
    assert saved.rows == 1
    assert rows == {(5, "a")}
