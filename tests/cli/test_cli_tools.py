"""Tools are listed, found, explained and shown, with the daemon and without."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import make_home
from tests.cli.terminal import Home

HOSTILE = "Look.\x1b]0;pwned\x07\x1b[2J \u202e[bold]x[/bold]\nSecond line. \x9b31m And \x07more."
CHANGING = Path(__file__).with_name("changing_server.py")


@pytest.fixture(scope="module", params=["daemon", "alone"])
def home(request: pytest.FixtureRequest, daemon: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Both ways to the same answers; the lists of the home without a daemon were made by a first question."""
    if request.param == "daemon":
        return daemon
    from tests.cli.conftest import servers

    return make_home(tmp_path_factory.mktemp("alone"), servers())


def test_the_list_names_every_tool_and_how_to_call_it(home: Home) -> None:
    lines = home.ok("tools", "list").splitlines()
    assert lines[0].split("\t") == ["TOOL", "CALL WITH", "DESCRIPTION"]
    kinds = {line.split("\t")[0]: line.split("\t")[1] for line in lines[1:]}
    assert kinds["demo:delete_note"] == "call_tool_destructive"
    assert kinds["demo:list_notes"] == "call_tool_read"
    assert kinds["echo:plain"] == "call_tool_write"
    only = home.json("tools", "list", "--server", "demo")
    assert {tool["server"] for tool in only["tools"]} == {"demo"}
    assert only["total"] == len(only["tools"])
    assert home.run("tools", "list", "--server", "nobody").returncode == 1


def test_search_finds_and_explains(home: Home) -> None:
    found = home.json("tools", "search", "delete", "a", "note", "-n", "3")
    assert found["tools"][0]["name"] == "demo:delete_note"
    assert 0 < found["tools"][0]["score"] <= 1
    assert len(found["tools"]) == 3
    explained = home.ok("tools", "search", "delete a note", "--explain", "-n", "2")
    assert "demo:delete_note" in explained
    assert "words of the query" in explained
    (why,) = home.json("tools", "search", "delete", "--explain", "--tool", "demo:note_stats")["tools"]
    assert why["id"] == "demo:note_stats"
    assert why["reason"]
    assert home.run("tools", "search", "x", "--explain", "--tool", "demo:nothing").returncode == 1


def test_a_tool_that_is_not_found_says_why_with_the_daemon_and_without(daemon: Home, tmp_path: Path) -> None:
    off = {"command": sys.executable, "args": ["-c", ""], "enabled": False}
    alone = make_home(tmp_path, {"off": off})
    daemon.ok("upstream", "add", "off", "--", sys.executable, "-c", "")
    daemon.ok("upstream", "disable", "off")
    try:
        for home in (daemon, alone):
            (why,) = home.json("tools", "search", "x", "--explain", "--tool", "off:any")["tools"]
            assert (why["shown"], why["reason"]) == (False, "not shown: its server is disabled")
    finally:
        daemon.ok("upstream", "remove", "off")


def test_hits_are_lines_in_a_pipe_and_nonsense_finds_nothing(daemon: Home) -> None:
    first = daemon.ok("tools", "search", "delete a note").splitlines()[1].split("\t")
    assert first[:2] == ["demo:delete_note", "call_tool_destructive"]
    assert daemon.json("tools", "search", "qqxyzzy")["tools"] == []


def test_one_tool_is_shown_with_what_it_takes_and_gives(home: Home) -> None:
    shown = home.shown("tools", "show", "demo:add_note", width=90)
    for part in ("call_tool_write", "readOnlyHint: false", "PARAMETER", "title", "required", "Gives", "Call it"):
        assert part in shown
    assert "mcpproxy call tool-write demo:add_note title=… text=…" in shown
    assert home.json("tools", "show", "demo:add_note")["inputSchema"]["required"] == ["title", "text"]
    result = home.run("tools", "show", "demo:ad_note")
    assert result.returncode == 1
    assert "Did you mean 'demo:add_note'?" in result.stderr
    assert home.run("tools", "show", "add_note").returncode == 1


@pytest.mark.parametrize("width", [50, 100])
def test_on_a_terminal_the_list_fits_its_width(daemon: Home, width: int) -> None:
    shown = daemon.shown("tools", "list", width=width)
    assert all(len(line) <= width for line in shown.splitlines())
    assert "✖ destr" in shown


def test_hostile_tools_do_nothing_to_the_terminal(daemon: Home, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text(HOSTILE)
    daemon.ok("upstream", "add", "hostile", "--", sys.executable, "-I", "-S", CHANGING, words)
    try:
        for command in (("list", "--server", "hostile"), ("show", "hostile:look"), ("search", "look second line")):
            with daemon.terminal("tools", *command) as terminal:
                assert terminal.end() == 0
                assert "[bold]x[/bold]" in terminal.plain or "hostile:look" in terminal.plain
                for sign in ("\x1b]0;", "\x1b[2J", "\u202e", "\x9b", "\x07"):
                    assert sign not in terminal.text, command
        for form in ("json", "yaml"):
            with daemon.terminal("tools", "show", "hostile:look", "-o", form) as terminal:
                assert terminal.end() == 0
                for sign in ("\x1b", "\u202e", "\x9b", "\x07"):
                    assert sign not in terminal.text, form
        assert json.loads(daemon.ok("tools", "show", "hostile:look", "-o", "json"))["description"] == HOSTILE
    finally:
        daemon.ok("upstream", "remove", "hostile")
