"""The log is read from a terminal and by scripts, with the daemon and without."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from tests.cli.conftest import make_home
from tests.cli.terminal import Home
from tests.journeys.support import Proxy, free_port

from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record, now
from mcpproxy.storage.engine import open_storage

HOSTILE = "\x1b[2J\x1b]0;pwned\x07\u202e[red]x[/red]\nnext"


def call(number: int, operation: str = "read", status: Any = "success", **more: Any) -> Record:
    """A call that happened a while ago."""
    values: dict[str, Any] = {
        "type": "tool_call",
        "source": "mcp",
        "server_name": "github",
        "tool_name": f"tool_{number}",
        "status": status,
        "arguments": Raw(b'{"repo": "x", "n": 0.10}'),
        "response": Raw(b'{"content": []}'),
        "duration_ms": 245.0,
        "timestamp": now() - timedelta(minutes=number),
        "request_id": f"request-{number}",
        "metadata": {"intent": {"operation_type": operation}, "tool_variant": f"call_tool_{operation}"},
    }
    return Record(**{**values, **more})


BLOCKED = {
    "intent": {"operation_type": "read", "data_sensitivity": "private", "reason": HOSTILE},
    "tool_variant": "call_tool_read",
    "code": "SERVER_MISMATCH",
}
RECORDS = [
    Record(type="system_start", source="internal", status="success", timestamp=now() - timedelta(hours=2)),
    *(call(number) for number in range(40, 4, -1)),
    call(4, "write"),
    call(3, "destructive", "interrupted"),
    call(2, "read", "blocked", error_message="it is marked destructive", metadata=BLOCKED, tool_name=f"evil{HOSTILE}"),
    Record(
        type="policy_decision",
        source="mcp",
        server_name="github",
        tool_name="tool_2",
        status="blocked",
        error_message="Tool 'github:tool_2' is marked destructive by server",
        timestamp=now() - timedelta(minutes=2),
        request_id="request-2",
        metadata={**BLOCKED, "output_validation": {"mode": "strict", "violation": "$.count: expected an integer"}},
    ),
]


def fill(home: Home) -> None:
    async def write() -> None:
        storage = open_storage("sqlite", home.data)
        journal = Journal(storage, home.data)
        await journal.start()
        await journal.write(*RECORDS)
        await journal.stop()
        storage.close()

    asyncio.run(write())


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a log of the past, and no daemon; tests only read it."""
    home = make_home(tmp_path_factory.mktemp("log"))
    fill(home)
    return home


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def test_in_a_pipe_each_record_is_one_whole_line(log: Home) -> None:
    out = log.ok("activity", "list", "-n", "5")
    assert out.splitlines()[0].split("\t") == ["ID", "TIME", "SERVER", "TOOL", "INTENT", "STATUS", "DURATION"]
    found = rows(out)
    assert len(found) == 5
    assert all(len(row["ID"]) == 26 for row in found)
    assert found[1] | {"ID": "", "TIME": ""} == {
        "ID": "",
        "TIME": "",
        "SERVER": "github",
        "TOOL": "evil[red]x[/red] next",
        "INTENT": "read",
        "STATUS": "blocked",
        "DURATION": "245ms",
    }
    assert [row["INTENT"] for row in found[2:4]] == ["destr", "write"]
    assert "\x1b" not in out


@pytest.mark.parametrize("width", [68, 80, 110, 200])
def test_on_a_terminal_the_table_fits_its_width(log: Home, width: int) -> None:
    shown = log.shown("activity", "list", width=width)
    lines = shown.splitlines()
    assert lines[0].split() == ["ID", "TIME", "SERVER", "TOOL", "INTENT", "STATUS", "DURATION"]
    assert all(len(line) <= width for line in lines), max(lines, key=len)
    assert "2m ago" in shown
    assert "✖ destr" in shown
    assert "○ read" in shown
    whole = [word for word in shown.split() if len(word) == 26 and word.startswith("01")]
    assert bool(whole) == (width >= 110)


def test_hostile_text_does_nothing_to_the_terminal(log: Home) -> None:
    with log.terminal("activity", "list", "-n", "2") as terminal:
        assert terminal.end() == 0
        assert "evil[red]x[/red] next" in terminal.plain
        for sign in ("\x1b]0;", "\x1b[2J", "\u202e"):
            assert sign not in terminal.text


def test_colours_stay_away_where_no_color_is_set(log: Home) -> None:
    with log.terminal("activity", "list", "-n", "3", env={"NO_COLOR": "1"}) as terminal:
        assert terminal.end() == 0
        assert "\x1b[3" not in terminal.text
        assert "\x1b[9" not in terminal.text
        assert "✎" in terminal.text or "○" in terminal.text


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (("--intent-type", "destructive"), 1),
        (("--intent-type", "write"), 1),
        (("--status", "blocked"), 2),
        (("--type", "policy_decision"), 1),
        (("--tool", "github:tool_7"), 1),
        (("--tool", "tool_7", "--server", "github"), 1),
        (("--request-id", "request-2"), 2),
        (("--since", "100m"), 40),
        (("--until", "90m"), 1),
        (("-q", "marked"), 2),
    ],
)
def test_filters_find_what_they_say(log: Home, filters: tuple[str, ...], count: int) -> None:
    page = log.json("activity", "list", *filters)
    assert len(page["activities"]) == page["total"] == count


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (("--status", "fine"), ["--status", "'fine'", "blocked"]),
        (("--type", "x"), ["--type", "tool_call"]),
        (("--intent-type", "delete"), ["--intent-type", "destructive"]),
        (("--since", "yesterday"), ["--since", "24h"]),
        (("-n", "0"), ["-n"]),
        (("--cursor", "x"), ["cursor"]),
    ],
)
def test_a_filter_that_cannot_be_meant_exits_2_and_names_what_can(
    log: Home, filters: tuple[str, ...], said: list[str]
) -> None:
    result = log.run("activity", "list", *filters)
    assert result.returncode == 2
    for word in said:
        assert word in result.stderr


def test_a_list_goes_on_at_its_cursor(log: Home) -> None:
    first = log.json("activity", "list", "-n", "3")
    second = log.json("activity", "list", "-n", "3", "--cursor", first["next_cursor"])
    ids = [record["id"] for record in first["activities"] + second["activities"]]
    assert len(set(ids)) == 6


def test_show_prints_intent_decision_violation_and_payloads(log: Home) -> None:
    (record,) = log.json("activity", "list", "--request-id", "request-2", "--type", "tool_call")["activities"]
    for shown in (log.ok("activity", "show", record["id"]), log.shown("activity", "show", record["id"])):
        for part in (
            "Intent",
            "read",
            "call_tool_read",
            "private",
            "Decision",
            "SERVER_MISMATCH",
            "Tool 'github:tool_2' is marked destructive by server",
            "Output validation",
            "$.count: expected an integer",
            "Arguments",
            '"n": 0.10',
            "Response",
        ):
            assert part in shown, part
        assert "\u202e" not in shown
        assert "pwned" not in shown


def test_show_takes_the_end_of_an_id_as_a_narrow_list_shows_it(log: Home) -> None:
    line = log.shown("activity", "list", "-n", "3", width=80).splitlines()[3]
    assert log.json("activity", "show", line.split()[0])["metadata"]["intent"]["operation_type"] == "destructive"


def test_show_of_an_unknown_id_fails(log: Home) -> None:
    result = log.run("activity", "show", "01KBDZ3V7W9Q4C2M8T5N6R1XYA", "-o", "json")
    assert result.returncode == 1
    assert json.loads(result.stderr)["code"] == "NOT_FOUND"


def test_summary_counts_in_a_pipe_and_draws_on_a_terminal(log: Home) -> None:
    found = {(row["COUNTED"], row["NAME"]): row["COUNT"] for row in rows(log.ok("activity", "summary"))}
    assert found["total", "total"] == str(len(RECORDS))
    assert found["by_intent", "destructive"] == "1"
    assert found["by_status", "blocked"] == "2"
    shown = log.shown("activity", "summary", width=80)
    assert "█" in shown
    assert "By status" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert log.json("activity", "summary", "--period", "1h")["period"] == "1h"
    assert log.run("activity", "summary", "--period", "1y").returncode == 2


def test_export_writes_lines_with_hashes_or_a_table(log: Home, tmp_path: Path) -> None:
    lines = log.ok("activity", "export").splitlines()
    assert len(lines) == len(RECORDS)
    assert json.loads(lines[-1])["hash"]
    target = tmp_path / "out.csv"
    result = log.run("activity", "export", "--format", "csv", "--status", "blocked", "--file", target)
    assert result.returncode == 0
    assert result.stdout == ""
    assert target.stat().st_mode & 0o777 == 0o600
    table = list(csv.DictReader(target.open(newline="")))
    assert [row["intent_operation_type"] for row in table] == ["read", "read"]
    assert log.run("activity", "export", "--format", "xml").returncode == 2
    assert log.run("activity", "export", "--file", tmp_path / "no" / "where").returncode == 1


def test_verify_says_that_nothing_was_altered_or_what_was(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    fill(home)
    assert f"Unaltered: {len(RECORDS)} records in 1 chain" in home.ok("activity", "verify")
    with closing(sqlite3.connect(home.data / "mcpproxy.db")) as database:
        (id_,) = database.execute("SELECT id FROM activity WHERE tool_name = 'tool_9'").fetchone()
        database.execute("UPDATE activity SET status = 'error' WHERE id = ?", (id_,))
        database.commit()
    result = home.run("activity", "verify")
    assert result.returncode == 1
    assert f"Record {id_} was edited" in result.stdout
    assert home.run("activity", "verify", "-o", "json").returncode == 1


def test_yaml_holds_the_whole_intent(log: Home) -> None:
    import yaml

    page = yaml.safe_load(log.ok("activity", "list", "-n", "2", "-o", "yaml"))
    assert page["activities"][1]["metadata"]["intent"]["data_sensitivity"] == "private"


def test_a_reader_that_has_enough_is_no_error(log: Home) -> None:
    import subprocess

    from tests.journeys.support import CONSOLE, environment

    words = " ".join(str(word) for word in (CONSOLE, *log.words(("activity", "export"))))
    script = f"set -o pipefail; for i in 1 2 3; do {words} 2>&1 >/dev/full || true; {words} | head -c 10; done"
    done = subprocess.run(
        ["/bin/bash", "-c", script], env=environment(log.path), capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception" not in done.stdout + done.stderr


def test_watch_follows_live_and_comes_back_after_the_daemon_does(tmp_path: Path) -> None:
    with Proxy(tmp_path) as proxy:
        home = Home(tmp_path, proxy.config, proxy.data)
        proxy.start()
        with home.terminal("activity", "watch", "--type", "tool_call") as terminal:
            terminal.until("Waiting for what happens")
            home.run("call", "tool-read", "nobody:first")
            terminal.until("first")
            proxy.stop()
            terminal.until("The daemon is gone")
            proxy.start()
            home.run("call", "tool-read", "nobody:second")
            terminal.until("second")
            assert terminal.plain.count("first") == 1
            assert "system_stop" not in terminal.plain
            terminal.interrupt()
            assert terminal.end() == 130


def test_watch_without_a_daemon_exits_7(log: Home) -> None:
    result = log.run("activity", "watch")
    assert result.returncode == 7
    assert "mcpproxy serve" in result.stderr


def test_the_daemon_answers_the_same_questions(daemon: Home) -> None:
    assert daemon.run("call", "tool-write", "echo:modifies", "--reason", "asked of the daemon").returncode == 0
    deadline = time.monotonic() + 10
    while not (found := daemon.json("activity", "list", "-q", "asked of the daemon")["activities"]):
        assert time.monotonic() < deadline
    id_ = found[0]["id"]
    assert "asked of the daemon" in daemon.ok("activity", "show", id_)
    assert daemon.json("activity", "show", id_) == found[0]
    assert daemon.json("activity", "summary")["by_intent"]["write"] >= 1
    assert id_ in daemon.ok("activity", "export", "--tool", "modifies")
    assert daemon.json("activity", "verify")["ok"] is True
    assert daemon.run("activity", "show", "01KBDZ3V7W9Q4C2M8T5N6R1XYA").returncode == 1


def test_a_port_that_nobody_serves_is_no_daemon(tmp_path: Path) -> None:
    home = make_home(tmp_path, listen=f"127.0.0.1:{free_port()}")
    assert home.run("status").returncode == 7
