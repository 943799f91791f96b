"""Servers are added, switched, taken over and watched from a terminal, with the daemon and without."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import make_home
from tests.cli.terminal import Home
from tests.journeys.support import TINY

COMMAND = (sys.executable, "-I", "-S", str(TINY))


def entries(home: Home) -> dict[str, Any]:
    found = json.loads(home.config.read_text())["mcpServers"]
    return found if isinstance(found, dict) else {entry["name"]: entry for entry in found}


def test_a_server_is_added_runs_is_switched_and_removed(daemon: Home) -> None:
    added = daemon.json("upstream", "add", "tiny", "--env", "MODE=x", "--env", "HOME", "--", *COMMAND)
    assert (added["state"], added["tools"]) == ("ready", 1)
    assert entries(daemon)["tiny"]["env"] == {"MODE": "x", "HOME": "${env:HOME}"}
    rows = daemon.ok("upstream", "list").splitlines()
    assert rows[0].split("\t") == ["NAME", "STATE", "PROTOCOL", "TOOLS", "SINCE", "WHAT", "REASON"]
    assert any(row.startswith("tiny\tready\tstdio\t1\t") for row in rows)
    assert "tiny is disabled" in daemon.ok("upstream", "disable", "tiny")
    assert "tiny is ready, 1 tool" in daemon.ok("upstream", "enable", "tiny")
    assert "tiny is ready" in daemon.ok("upstream", "restart", "tiny")
    assert daemon.run("upstream", "add", "tiny", "--", *COMMAND).returncode == 1
    assert "tiny is removed" in daemon.ok("upstream", "remove", "tiny")
    assert "tiny" not in entries(daemon)


def test_a_server_that_does_not_start_is_added_and_said_to_fail(daemon: Home) -> None:
    try:
        shown = daemon.shown("upstream", "add", "lost", "--", "no-such-command-at-all")
        assert "lost is backing_off" in shown
        assert "no-such-command-at-all" in daemon.ok("upstream", "logs", "lost")
    finally:
        daemon.ok("upstream", "remove", "lost")


def test_a_quarantined_server_waits_until_it_is_approved(daemon: Home) -> None:
    added = daemon.json("upstream", "add", "held", "--quarantine", "--", *COMMAND)
    assert added["state"] == "quarantined"
    assert "held is ready" in daemon.ok("upstream", "approve", "held")
    daemon.ok("upstream", "remove", "held")


def test_without_a_daemon_the_file_is_changed_and_nothing_else_in_it(tmp_path: Path) -> None:
    home = make_home(tmp_path, {"a": {"command": "x", "unknown_key": 1}}, tools_limit=7)
    result = home.run("upstream", "add", "docs", "https://docs.example/mcp", "--header", "X-Key: ${env:KEY}")
    assert result.returncode == 0
    assert "next start" in result.stderr
    home.ok("upstream", "add-json", "more", '{"command": "npx", "args": ["-y", "p"], "type": "stdio"}')
    home.ok("upstream", "disable", "a")
    document = json.loads(home.config.read_text())
    assert document["tools_limit"] == 7
    assert document["mcpServers"]["a"] == {"command": "x", "unknown_key": 1, "enabled": False}
    assert document["mcpServers"]["docs"] == {"url": "https://docs.example/mcp", "headers": {"X-Key": "${env:KEY}"}}
    listed = {server["name"]: server["state"] for server in home.json("upstream", "list")["servers"]}
    assert listed == {"a": "disabled", "docs": "disconnected", "more": "disconnected"}
    home.ok("upstream", "remove", "docs")
    assert "docs" not in entries(home)


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        (("add", "x"), 2, "URL"),
        (("add", "x", "npx", "-y", "package"), 2, "Put -- before the command"),
        (("add", "a/b", "--", "x"), 2, "without ':', '/'"),
        (("add", "x", "--protocol", "htp", "--", "x"), 2, 'did you mean "http"?'),
        (("add", "x", "--header", "nope", "https://a.example"), 2, "'Name: value'"),
        (("add", "a", "--", "x"), 1, "there is a server named 'a' already"),
        (("add-json", "x", "{"), 2, "not valid JSON"),
        (("add-json", "x", '{"url": "ftp://x"}'), 2, "https://example.com/mcp"),
        (("remove", "nobody"), 1, "no server named 'nobody'"),
        (("enable", "nobody"), 1, "no server named 'nobody'"),
        (("restart", "a"), 7, "mcpproxy serve"),
        (("login", "a"), 1, "not one that is logged in to"),
    ],
)
def test_a_mistake_is_said_and_changes_nothing(
    tmp_path: Path, words: tuple[str, ...], exit_code: int, said: str
) -> None:
    home = make_home(tmp_path, {"a": {"command": "x"}})
    before = home.config.read_bytes()
    result = home.run("upstream", *words)
    assert result.returncode == exit_code, result.stderr
    assert said in result.stderr
    assert home.config.read_bytes() == before


def test_a_secret_is_never_printed(tmp_path: Path) -> None:
    secret = "canary-5f1f2f7a9c"
    home = make_home(tmp_path, {"a": {"command": "x", "env": {"API_KEY": secret}, "args": ["--token", secret]}})
    for words in (("upstream", "list"), ("upstream", "list", "-o", "json"), ("config", "show", "-o", "yaml")):
        result = home.run(*words)
        assert result.returncode == 0
        assert secret not in result.stdout + result.stderr


def test_logs_are_followed_live(daemon: Home) -> None:
    script = (
        "import sys, time\nfor n in range(10**6):\n    print('line', n, file=sys.stderr, flush=True); time.sleep(0.2)"
    )
    daemon.ok("upstream", "add", "chatty", "--no-wait", "--", sys.executable, "-c", script)
    try:
        with daemon.terminal("upstream", "logs", "chatty", "-n", "1", "--follow") as terminal:
            terminal.until("line 5")
            terminal.interrupt()
            assert terminal.end() == 130
        (line,) = daemon.ok("upstream", "logs", "chatty", "-n", "1").splitlines()
        assert " ! line " in line
    finally:
        daemon.ok("upstream", "remove", "chatty")


# Taking over.


@pytest.fixture
def neighbours(tmp_path: Path) -> Home:
    """A home in which other clients have servers."""
    home = make_home(tmp_path, {"known": {"command": "npx", "args": ["known"]}})
    files: dict[str, Any] = {
        ".config/Claude/claude_desktop_config.json": {"mcpServers": {"files": {"command": "npx", "args": ["files"]}}},
        ".claude.json": {
            "mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080/mcp"}},
            "projects": {"/p": {"mcpServers": {"db": {"command": "db", "env": {"KEY": "${DB_KEY}"}}}}},
        },
        ".cursor/mcp.json": {
            "mcpServers": {
                "files": {"url": "https://files.example/mcp", "headers": {"Authorization": "Bearer hidden-a7b8c9d0"}},
                "known": {"command": "npx", "args": ["known"]},
                "broken": {"command": 7},
            }
        },
        ".gemini/settings.json": {"mcpServers": {"old": {"url": "https://old.example/sse", "trust": True}}},
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    code = tmp_path / ".config/Code/User/mcp.json"
    code.parent.mkdir(parents=True)
    code.write_text('{\n  // mine\n  "servers": {"asks": {"command": "x", "env": {"K": "${input:key}"}},},\n}')
    return home


def test_import_shows_what_is_there_and_adds_nothing_unasked(neighbours: Home) -> None:
    before = neighbours.config.read_bytes()
    result = neighbours.run("upstream", "import")
    assert result.returncode == 0
    assert neighbours.config.read_bytes() == before
    rows = [row.split("\t") for row in result.stdout.splitlines()]
    verdicts = {(row[0], row[1]): row[3] for row in rows[1:]}
    assert verdicts["Claude Desktop", "files"] == "new"
    assert verdicts["Claude Code", "db"] == "new"
    assert verdicts["Cursor", "files-2"] == "new"
    assert verdicts["Cursor", "known"] == "is there already"
    assert "does not load" in verdicts["Cursor", "broken"]
    assert "asks for input" in verdicts["VS Code", "asks"]
    assert "hidden-a7b8c9d0" not in result.stdout
    assert "--yes" in result.stderr


def test_import_adds_what_is_new_once_the_user_agrees(neighbours: Home) -> None:
    with neighbours.terminal("upstream", "import", "--from", "cursor") as terminal:
        terminal.until("Add 1 server? [y/N]")
        terminal.type("y\n")
        assert terminal.end() == 0
        assert "Added: files" in terminal.plain
    assert entries(neighbours)["files"]["headers"] == {"Authorization": "Bearer hidden-a7b8c9d0"}
    added = neighbours.json("upstream", "import", "--yes")["added"]
    assert added == ["files-2", "mcpproxy", "db", "old"]
    assert entries(neighbours)["db"]["env"] == {"KEY": "${env:DB_KEY}"}
    assert entries(neighbours)["old"]["protocol"] == "sse"
    assert neighbours.json("upstream", "import", "--yes")["added"] == []


def test_no_is_no(neighbours: Home) -> None:
    before = neighbours.config.read_bytes()
    with neighbours.terminal("upstream", "import") as terminal:
        terminal.until("[y/N]")
        terminal.type("\n")
        assert terminal.end() == 0
        assert "Nothing was changed" in terminal.plain
    assert neighbours.config.read_bytes() == before


def test_import_from_a_file_and_from_an_unknown_client(neighbours: Home, tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text('{"mcpServers": [{"name": "listed", "command": "x"}]}')
    assert neighbours.json("upstream", "import", path, "--yes")["added"] == ["listed"]
    assert neighbours.run("upstream", "import", "--from", "emacs").returncode == 2
    assert neighbours.run("upstream", "import", tmp_path / "none.json").returncode == 2


# Tokens.


def test_a_token_is_made_shown_once_listed_and_revoked(daemon: Home) -> None:
    secret = daemon.ok("token", "create", "--name", "ci", "--allow", "read,write", "--servers", "echo").strip()
    assert secret.startswith("mcpp_")
    row = next(row for row in daemon.ok("token", "list").splitlines() if "\tci\t" in row)
    assert "read,write" in row
    assert secret not in daemon.ok("token", "list", "-o", "json")
    assert "ci is revoked" in daemon.ok("token", "revoke", "ci")
    assert daemon.run("token", "revoke", "ci").returncode == 1
    assert daemon.run("token", "create", "--name", "x", "--allow", "fly").returncode == 2
    assert daemon.run("token", "create").returncode == 2


def test_tokens_need_the_daemon(alone: Home) -> None:
    assert alone.run("token", "list").returncode == 7


def test_status_is_for_people_and_programs(daemon: Home) -> None:
    found = daemon.json("status")
    assert found["servers"]["ready"] >= 2
    assert "has been running for" in daemon.shown("status")
