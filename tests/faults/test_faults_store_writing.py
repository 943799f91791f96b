"""What if nothing can be written? Calls are refused in clear words, what is there is read, and it heals by itself."""

from __future__ import annotations

import contextlib
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.stores import (
    Answer,
    call,
    command,
    database,
    findings,
    locked,
    new_proxy,
    problems,
    refuses_to_start,
)
from tests.journeys.support import Proxy

pytestmark = pytest.mark.xdist_group("faults-store-writing")

LONG = "x" * 40_000


def assert_refused(answer: Answer, *words: str) -> None:
    assert (answer.status, answer.code) == (503, "RECORD_FAILED"), answer
    for word in words:
        assert word in answer.message


def assert_still_readable(proxy: Proxy) -> None:
    listed = command(proxy, "activity", "list", "-n", "1")
    assert listed.returncode == 0, listed.stderr
    assert "tiny" in listed.stdout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_refuses_calls_until_there_is_room(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    with new_proxy(tmp_path / "home") as proxy:
        proxy.data = small_disk / "data"
        proxy.start()
        assert call(proxy).status == 200
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        words = ("mcpproxy.db has no room left", "Free disk space")
        assert_refused(call(proxy, LONG), *words)
        assert_refused(call(proxy, LONG, variant="write"), *words)
        assert_still_readable(proxy)
        found = findings(proxy, "--quick")
        assert found["disk"]["level"] == found["log"]["level"] == "broken"
        assert "calls are refused" in found["log"]["text"]
        ballast.unlink()
        assert call(proxy, LONG).status == call(proxy, LONG, variant="write").status == 200
        assert findings(proxy)["log"]["text"].startswith("unaltered")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """One that runs, and that each test leaves as well as it found it."""
    with new_proxy(tmp_path_factory.mktemp("writing") / "home") as started:
        started.start()
        assert call(started).status == 200
        yield started


def test_a_limit_on_the_file_refuses_calls_until_it_is_lifted(proxy: Proxy) -> None:
    reached = (proxy.data / "mcpproxy.db-wal").stat().st_size + 10_000
    resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, (reached, resource.RLIM_INFINITY))
    words = ("mcpproxy.db cannot be written", "A quota or a limit is reached")
    assert_refused(call(proxy, LONG), *words)
    assert_refused(call(proxy, LONG, variant="write"), *words)
    assert_still_readable(proxy)
    resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert call(proxy, LONG).status == call(proxy, LONG, variant="write").status == 200


def test_a_lock_of_another_process_refuses_calls_until_it_is_gone(proxy: Proxy) -> None:
    with locked(database(proxy)):
        assert_refused(call(proxy, variant="write"), "The call was not made", "is locked by another process")
        assert_still_readable(proxy)
        assert "is locked by another process" in findings(proxy, "--quick")["log"]["text"]
    assert call(proxy, variant="write").status == 200
    assert problems(proxy) == []


def test_a_backup_put_back_without_the_right_to_write_heals_with_its_mode(proxy: Proxy, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with closing(sqlite3.connect(database(proxy))) as running:
        running.execute(f"VACUUM INTO '{backup}'")
    backup.chmod(0o400)
    for file in proxy.data.glob("mcpproxy.db*"):
        file.unlink()
    backup.rename(database(proxy))
    words = ("mcpproxy.db cannot be written", "Check the owner and mode")
    assert_refused(call(proxy, variant="write"), *words)
    assert_still_readable(proxy)
    assert_refused(call(proxy, variant="write"), *words)
    database(proxy).chmod(0o600)
    assert call(proxy, variant="write").status == 200
    assert problems(proxy) == []


def test_a_database_that_may_not_be_written_stops_a_start_and_is_left_alone(proxy: Proxy) -> None:
    proxy.stop()
    before = database(proxy).read_bytes()
    with locked(database(proxy)):
        found = findings(proxy, "--quick")["database"]
        assert "is locked by another process" in found["text"]
        assert found["fix"] == f"See who has it open: fuser -v {database(proxy)}"
    database(proxy).chmod(0o400)
    exit_code, said = refuses_to_start(proxy)
    assert exit_code == 3
    assert "mcpproxy.db cannot be opened (Permission denied). Check" in said
    found = findings(proxy, "--quick")["database"]
    assert found["level"] == "broken"
    assert f"chmod 600 {database(proxy)}" in found["fix"]
    assert database(proxy).read_bytes() == before
    database(proxy).chmod(0o600)
    proxy.start()
    assert call(proxy).status == 200
