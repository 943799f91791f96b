"""The first start: a process of its own makes the database, and is not missed where it cannot."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcpproxy.storage import first
from mcpproxy.storage.engine import FILE_NAME, open_storage

LOADED = "import sys; from pathlib import Path; from mcpproxy.storage.engine import open_storage; "


def test_another_process_makes_the_tables(tmp_path: Path) -> None:
    making = first.begin("sqlite", tmp_path)
    assert making is not None
    first.finish(making)
    assert making.returncode == 0 and (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    opened = f"{LOADED}open_storage('sqlite', Path(sys.argv[1])).close(); sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", opened, str(tmp_path)], check=False).returncode == 0


def test_nothing_is_made_where_there_is_a_database_or_it_is_elsewhere(tmp_path: Path) -> None:
    assert first.begin("postgresql://nowhere/at_all", tmp_path) is None
    open_storage("sqlite", tmp_path).close()
    assert first.begin("sqlite", tmp_path) is None
    first.finish(None)


def test_what_lies_in_the_working_directory_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sqlalchemy.py").write_text("from pathlib import Path; Path('run').touch()")
    monkeypatch.chdir(tmp_path)
    first.finish(first.begin("sqlite", tmp_path / "data"))
    assert not (tmp_path / "run").exists() and (tmp_path / "data" / FILE_NAME).exists()


def test_where_it_fails_or_takes_for_ever_the_proxy_makes_them_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first, "_PATIENCE_SECONDS", 0.01)
    first.finish(first.begin("sqlite", tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    assert first.begin("sqlite", tmp_path / "other") is None
    for place in (tmp_path, tmp_path / "other"):
        open_storage("sqlite", place).close()
        assert (place / FILE_NAME).exists()
