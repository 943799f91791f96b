"""Is what a server says on the side kept, within bounds, and free of secrets?"""

import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.upstream import log as module
from mcpproxy.upstream.log import ServerLog, log_path


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ServerLog]:
    opened = ServerLog(log_path(tmp_path, "a"), lambda text: text.replace("hunter2", "***"))
    yield opened
    opened.close()


def said(log: ServerLog) -> list[str]:
    return [line[21:] for line in log.lines]


def test_lines_and_remarks_are_kept_in_order_and_on_disk(log: ServerLog, tmp_path: Path) -> None:
    log.stderr(b"one\ntw")
    log.note("a remark")
    log.stderr(b"o\n\n  \nthree")
    assert said(log) == ["! one", "- a remark", "! two"]
    log.close()
    path = tmp_path / "logs" / "server-a.log"
    assert [line[21:] for line in path.read_text().splitlines()] == ["! one", "- a remark", "! two", "! three"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_secrets_are_masked_everywhere(log: ServerLog, tmp_path: Path) -> None:
    log.stderr(b"the password is hunter2\n")
    log.note("hunter2 again")
    log.stderr(b"and hunter2")
    assert "hunter2" not in "".join(log.lines) + log.last_error
    log.close()
    assert "hunter2" not in (tmp_path / "logs" / "server-a.log").read_text()


def test_the_last_error_is_the_last_thing_said_in_this_life(log: ServerLog) -> None:
    assert log.last_error == ""
    log.stderr(b"first\nsecond\n")
    log.note("a remark of ours ! not the server's")
    assert log.last_error == "second"
    log.stderr(b"no newline")
    assert log.last_error == "no newline"
    log.begin()
    assert log.last_error == ""
    log.stderr(b"another life\n")
    assert said(log)[-2:] == ["! no newline", "! another life"]


def test_what_is_no_text_is_kept_readable(log: ServerLog) -> None:
    log.stderr(b"\xff\xfe caf\xc3\xa9\r\n")
    assert said(log) == ["! \ufffd\ufffd café"]


def test_long_lines_are_cut(log: ServerLog) -> None:
    log.stderr(b"x" * 100_000 + b"\n")
    log.stderr(b"next\n")
    assert len(said(log)[0]) == 2002
    assert said(log)[-1] == "! next"


def test_the_number_of_lines_and_the_size_on_disk_are_bounded(
    log: ServerLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10_000)
    for number in range(2000):
        log.note(f"remark {number}")
    assert len(log.lines) == 1000 and log.lines[-1].endswith("remark 1999")
    log.close()
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files] == ["server-a.log", "server-a.log.1"]
    assert all(file.stat().st_size <= 10_000 for file in files)
    assert files[0].read_text().splitlines()[-1].endswith("remark 1999")


@pytest.mark.parametrize("flood", [b"x" * 100 + b"\n", b"\n", b"y\n", b"z"])
def test_a_flood_costs_the_flooding_server_its_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flood: bytes
) -> None:
    now, masked = 100.0, 0

    def mask(text: str) -> str:
        nonlocal masked
        masked += 1
        return text

    monkeypatch.setattr(time, "monotonic", lambda: now)
    log = ServerLog(log_path(tmp_path, "a"), mask)
    for _ in range(100):
        log.stderr(flood * (65536 // len(flood)))
    assert masked < 5000  # what each line costs, however short, is bounded too
    now = 101.0
    log.stderr(b"after the flood\n")
    assert said(log)[-1] == "! after the flood"
    assert any("bytes of stderr that came too fast" in line for line in log.lines)
    log.close()


def test_a_full_disk_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    log = ServerLog(log_path(tmp_path, "a"), str)
    log.stderr(b"still kept in memory\n")
    assert said(log) == ["! still kept in memory"]
    log.close()


@given(st.lists(st.text(min_size=1, max_size=64), min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_file(names: list[str]) -> None:
    first, second = (log_path(Path("/d"), name) for name in names)
    assert first != second
    assert first.parent == second.parent == Path("/d/logs")
    assert max(len(path.name.encode()) for path in (first, second)) < 250


def test_names_that_look_alike_once_they_are_made_safe_stay_apart(tmp_path: Path) -> None:
    names = ["\U0001f600", "\u1f600", "a%62", "ab", "中" * 64, "中" * 63 + "国", "..", "."]
    paths = {log_path(tmp_path, name) for name in names}
    assert len(paths) == len(names)
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.touch()
