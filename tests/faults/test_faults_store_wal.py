"""What if the file is lost that SQLite keeps beside its database? Nothing while we run; after a crash, it is missed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.stores import call, database, findings, new_proxy, problems
from tests.journeys.support import Proxy, eventually

CALLS = 5


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """A proxy that runs, with calls on record."""
    with new_proxy(tmp_path / "home") as started:
        started.start()
        for _ in range(CALLS):
            assert call(started).status == 200
        yield started


def lose(proxy: Proxy) -> None:
    """Remove the files beside the database."""
    for name in ("mcpproxy.db-wal", "mcpproxy.db-shm"):
        (proxy.data / name).unlink()


def calls(proxy: Proxy) -> int:
    found: int = proxy.api("/activity?type=tool_call")["total"]
    return found


def test_lost_while_it_runs_it_is_written_back(proxy: Proxy) -> None:
    before = database(proxy).stat().st_ino
    lose(proxy)
    assert call(proxy, variant="write").status == 200
    proxy.await_log("mcpproxy.db-wal was removed while mcpproxy ran; what it held was written back")
    assert calls(proxy) == CALLS + 1
    assert call(proxy).status == 200
    proxy.kill()  # without the chance to write anything back
    proxy.start()
    assert calls(proxy) == CALLS + 2
    assert problems(proxy) == []
    assert database(proxy).stat().st_ino == before


def test_lost_after_a_crash_it_is_missed(proxy: Proxy) -> None:
    (note,) = (proxy.data / "writers").iterdir()
    eventually(lambda: b'"position"' in note.read_bytes(), "it is noted how far the chain goes")
    noted = eventually(
        lambda: (found := json.loads(note.read_bytes()))["position"] > CALLS and found, "every call is noted"
    )
    proxy.kill()
    lose(proxy)
    cut = f"The chain of writer {note.name} was cut: it went to position {noted['position']}, and ends at 0."
    found = findings(proxy)["log"]
    assert (found["level"], found["text"]) == ("broken", f"altered: {cut}")
    assert f"if they are gone for good, remove {note}" in found["fix"]
    proxy.start()
    proxy.await_log(f"records are missing: writer {note.name} had {noted['position']}, and the database has 0")
    assert call(proxy).status == 200
    (problem,) = problems(proxy)
    assert (problem["kind"], problem["text"]) == ("cut", cut)
    note.unlink()
    assert problems(proxy) == []
