"""What if the file is not what was written? It is never replaced, the damage is named, and the rest can be saved."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.stores import (
    PAGE,
    call,
    command,
    database,
    findings,
    flip,
    new_proxy,
    problems,
    refuses_to_start,
)
from tests.journeys.support import Proxy

CALLS = 60
MIDDLE = 30
OPERATIONS = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
SALVAGE = "put a backup in its place, or save what can be read: mcpproxy doctor --salvage DIR"


def text_of(number: int) -> str:
    """What a call is about: long enough that few records share a page."""
    return f"call {number:03} " + "." * 700


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with calls on record, left in order."""
    with new_proxy(tmp_path_factory.mktemp("sound") / "home") as proxy:
        proxy.start()
        for number in range(CALLS):
            assert call(proxy, text_of(number), request_id=f"call-{number}").status == 200
        assert command(proxy, "token", "create", "--name", "kept").returncode == 0
        assert proxy.stop() == 0
        return proxy.data


@pytest.fixture
def proxy(sound: Path, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy that does not run yet, with a copy of those records."""
    with new_proxy(tmp_path / "home", sound) as made:
        yield made


def recorded(path: Path) -> dict[str, str]:
    """The id of each call's record by its request."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT request_id, id FROM activity WHERE type = 'tool_call' ORDER BY seq")
        return dict(rows.fetchall())


def place_of(path: Path, number: int) -> int:
    """Where in the file the arguments of a call begin."""
    at = path.read_bytes().find(text_of(number).encode())
    assert at > 0
    return at


def test_a_flipped_byte_in_a_record_is_named_by_verify(proxy: Proxy) -> None:
    flip(database(proxy), place_of(database(proxy), MIDDLE))
    (problem,) = problems(proxy)
    assert (problem["kind"], problem["id"]) == ("edited", recorded(database(proxy))[f"call-{MIDDLE}"])
    found = findings(proxy)
    assert (found["database"]["level"], found["log"]["level"]) == ("ok", "broken")
    proxy.start()
    assert call(proxy).status == 200


def test_a_damaged_page_costs_what_is_on_it_and_the_rest_is_saved(proxy: Proxy) -> None:
    at = place_of(database(proxy), MIDDLE) // PAGE * PAGE
    on_page = [number for number in range(CALLS) if place_of(database(proxy), number) // PAGE * PAGE == at]
    ids = recorded(database(proxy))
    flip(database(proxy), at)
    # The proxy goes on with all that does not need the page.
    proxy.start()
    assert call(proxy).status == 200
    assert proxy.stop() == 0
    # Verify names the last record before it, and the doctor what to do.
    (problem,) = problems(proxy)
    assert problem["kind"] == "unreadable"
    assert f"The first record after record {ids[f'call-{on_page[0] - 1}']} cannot be read" in problem["text"]
    found = findings(proxy)
    for area in ("database", "log"):
        assert found[area]["level"] == "broken"
        assert SALVAGE in found[area]["fix"]
    # What it says to do is done to the letter.
    before = database(proxy).read_bytes()
    done = command(proxy, "doctor", "--salvage", str(proxy.data / "saved"), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert database(proxy).read_bytes() == before
    said = json.loads(done.stdout)
    described = OPERATIONS.split("```sh\nmcpproxy doctor --salvage")[1].split("```")[0].splitlines()[1:]
    assert said["steps"] == [line.replace('"', "").replace("$MCPPROXY_DATA", str(proxy.data)) for line in described]
    assert {each["table"]: each["gaps"] for each in said["tables"]}["activity"] == 1
    for step in said["steps"][:-1]:
        subprocess.run(["/bin/sh", "-c", step], check=True)
    lost = {ids[f"call-{number}"] for number in on_page}
    assert set(recorded(database(proxy)).values()) >= set(ids.values()) - lost
    proxy.start()
    assert call(proxy).status == 200
    assert "kept" in command(proxy, "token", "list").stdout
    again = command(proxy, "doctor", "--salvage", str(proxy.data / "again"))
    assert (again.returncode, "Stop it first" in again.stderr) == (1, True)
    found = findings(proxy)
    assert found["database"]["level"] == "ok"
    assert "missing from the chain" in found["log"]["text"]
    assert (proxy.data / "damaged" / "mcpproxy.db").read_bytes() == before


@pytest.mark.parametrize("left", [0.5, 0])
def test_a_file_that_was_cut_off_stops_a_start_and_is_left_as_it_is(proxy: Proxy, left: float) -> None:
    path = database(proxy)
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * left))
    before = path.read_bytes()
    exit_code, said = refuses_to_start(proxy)
    assert exit_code == 3
    assert "left as it is" in said
    found = findings(proxy, "--quick")["database"]
    assert found["level"] == "broken"
    assert "backup in its place" in found["fix"]
    assert path.read_bytes() == before


def test_of_a_file_that_was_cut_off_the_beginning_is_saved(proxy: Proxy) -> None:
    ids = recorded(database(proxy))
    with database(proxy).open("r+b") as file:
        file.truncate(place_of(database(proxy), MIDDLE) // PAGE * PAGE)
    done = command(proxy, "doctor", "--salvage", str(proxy.home / "saved"))
    assert done.returncode == 0, done.stderr
    again = command(proxy, "doctor", "--salvage", str(proxy.home / "saved"))
    assert (again.returncode, "is there already" in again.stderr) == (1, True)
    saved = recorded(proxy.home / "saved" / "mcpproxy.db")
    assert set(saved.items()) <= set(ids.items())
    assert len(saved) >= MIDDLE - 3
