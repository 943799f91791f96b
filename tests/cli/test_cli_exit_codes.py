"""Every exit code of the contract has a real cause, one clear paragraph, and a JSON form."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import make_home
from tests.cli.terminal import Home
from tests.cli.test_cli_activity import fill
from tests.journeys.support import CONSOLE, KEY, environment, run

from mcpproxy.listen import open_socket


def complaint(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What stands on stderr in JSON mode: one line."""
    (line,) = result.stderr.splitlines()
    found: dict[str, str] = json.loads(line)
    assert set(found) == {"code", "message", "hint"}
    return found


def test_0_is_success(daemon: Home) -> None:
    assert daemon.run("status").returncode == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_changes_no_exit_code(tmp_path: Path, closed: str) -> None:
    home = make_home(tmp_path)
    for words, code in ((("version",), 0), (home.words(("config", "path")), 0), (home.words(("activity", "frob")), 2)):
        line = f"exec {shlex.join(map(str, [CONSOLE, *words]))} {closed}"
        result = subprocess.run(
            ["bash", "-c", line], env=environment(home.path), capture_output=True, text=True, timeout=60, check=False
        )
        assert (result.returncode, "Traceback" in result.stderr) == (code, False), result.stderr


def test_1_is_a_refusal_or_a_failure(daemon: Home) -> None:
    result = daemon.run("call", "tool-read", "echo:deletes", "-o", "json")
    assert (result.returncode, complaint(result)["code"]) == (1, "SERVER_MISMATCH")


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("tools", "lst"),
        ("activity", "list", "--nope"),
        ("activity", "list", "--status", "fine"),
        ("activity", "list", "-n", "many"),
        ("call", "tool-read"),
        ("tools",),
        ("-o", "xml", "status"),
    ],
)
def test_2_is_a_mistake_on_the_command_line(daemon: Home, words: tuple[str, ...]) -> None:
    result = daemon.run(*words)
    assert result.returncode == 2
    assert result.stdout == ""
    if "xml" not in words:
        again = daemon.run("--json", *words)
        assert (again.returncode, complaint(again)["code"]) == (2, "USAGE")


def test_a_mistyped_command_gets_a_suggestion(alone: Home) -> None:
    assert "Did you mean 'list'?" in alone.run("tools", "lst").stderr


@pytest.mark.parametrize(
    ("words", "damage"),
    [
        ("activity list", "damaged"),
        ("activity list", "unreadable"),
        ("activity list", "of another version"),
        ("activity verify", "damaged"),
        ("tools list", "damaged"),
        ("call tool-read echo:reads", "unreadable"),
    ],
)
def test_3_is_a_database_that_cannot_be_read(alone: Home, words: str, damage: str) -> None:
    database = alone.data / "mcpproxy.db"
    if damage == "damaged":
        database.write_bytes(b"this is not a database" * 300)
    elif damage == "unreadable":
        database.touch(mode=0)
    else:
        fill(alone)
        with closing(sqlite3.connect(database)) as opened:
            opened.execute("UPDATE alembic_version SET version_num = '9999'")
            opened.commit()
    result = alone.run(*words.split(), "-o", "json")
    assert (result.returncode, complaint(result)["code"]) == (3, "DATABASE")
    assert "mcpproxy.db" in complaint(result)["message"]


def test_3_is_a_database_that_somebody_holds(alone: Home) -> None:
    fill(alone)
    with closing(sqlite3.connect(alone.data / "mcpproxy.db", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN EXCLUSIVE")
        result = alone.run("activity", "list")
    assert result.returncode == 3
    assert "locked" in result.stderr


@pytest.mark.parametrize("words", [("config", "validate"), ("tools", "list"), ("status",), ("upstream", "list")])
def test_4_is_a_configuration_that_does_not_load(tmp_path: Path, words: tuple[str, ...]) -> None:
    home = make_home(tmp_path)
    home.config.write_text('{"tools_limit": 500, "output_validation": {"mode": "strickt"}}')
    result = home.run(*words, "-o", "json")
    assert (result.returncode, complaint(result)["code"]) == (4, "CONFIG_INVALID")
    for part in ("tools_limit", "500", "output_validation.mode", "strickt"):
        assert part in complaint(result)["message"]


def test_5_is_a_file_that_may_not_be_read_or_written(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    home.config.chmod(0)
    result = home.run("config", "show", "-o", "json")
    assert (result.returncode, complaint(result)["code"]) == (5, "PERMISSION")
    home.config.chmod(0o600)
    tmp_path.chmod(0o500)
    try:
        result = home.run("upstream", "add", "x", "--", "y")
        assert result.returncode == 5
    finally:
        tmp_path.chmod(0o700)


def test_5_is_a_key_that_the_daemon_does_not_take(daemon: Home, tmp_path: Path) -> None:
    other = make_home(tmp_path)
    settings = json.loads(daemon.config.read_text())
    other.config.write_text(json.dumps({"listen": settings["listen"], "api_key": "another-key-of-mine"}))
    result = other.run("status", "-o", "json")
    assert (result.returncode, complaint(result)["code"]) == (5, "UNAUTHORIZED")
    assert "api_key" in complaint(result)["hint"]


def test_6_is_a_port_in_use(alone: Home) -> None:
    with open_socket("127.0.0.1:0") as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = alone.run("serve", "--listen", address, "-o", "json")
    assert (result.returncode, complaint(result)["code"]) == (6, "PORT_IN_USE")


@pytest.mark.parametrize(
    "words", [("status",), ("token", "list"), ("activity", "watch"), ("upstream", "restart", "echo")]
)
def test_7_is_a_daemon_that_is_not_there(alone: Home, words: tuple[str, ...]) -> None:
    result = alone.run(*words, "-o", "json")
    assert (result.returncode, complaint(result)["code"]) == (7, "DAEMON_NOT_REACHABLE")
    assert complaint(result)["hint"].startswith("Start it with: mcpproxy serve.")


def test_the_daemon_is_found_by_its_address_where_the_socket_is_elsewhere(daemon: Home, tmp_path: Path) -> None:
    elsewhere = Home(tmp_path, daemon.config, tmp_path / "elsewhere")
    found = elsewhere.json("status")
    assert found["config"]["path"] == str(daemon.config)


def test_the_key_goes_to_no_other_program(tmp_path: Path) -> None:
    """Whoever has the port but is no mcpproxy gets a question without the key, and is not taken for the daemon."""
    server = tmp_path / "server.py"
    server.write_text(
        "import http.server, sys\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        print(self.path, dict(self.headers), file=open(sys.argv[1], 'a'), flush=True)\n"
        "        self.send_response(200); self.end_headers(); self.wfile.write(b'hello')\n"
        "    def log_message(self, *a): pass\n"
        "s = http.server.HTTPServer(('127.0.0.1', 0), Handler)\n"
        "print(s.server_port, flush=True); s.serve_forever()\n"
    )
    heard = tmp_path / "heard"
    with subprocess.Popen([sys.executable, server, heard], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        home = make_home(tmp_path, listen=f"127.0.0.1:{port}")
        try:
            assert home.run("status").returncode == 7
        finally:
            process.kill()
    assert "/healthz" in heard.read_text()
    assert KEY not in heard.read_text()


def test_a_listener_of_another_user_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpproxy.cli import daemon

    with open_socket("127.0.0.1:0") as opened:
        port = opened.getsockname()[1]
        assert daemon._is_ours(port)
        table = Path("/proc/net/tcp").read_text()
        lines = [line.split() for line in table.splitlines()[1:]]
        mine = next(fields for fields in lines if fields[1].endswith(f":{port:04X}") and fields[3] == "0A")
        assert int(mine[7]) in (0, __import__("os").getuid())
    monkeypatch.setattr("os.getuid", lambda: 4_000_001)
    with open_socket("127.0.0.1:0") as opened:
        # Root's listeners are trusted; any other user's are not.
        assert daemon._is_ours(opened.getsockname()[1]) == (int(mine[7]) == 0)


@pytest.fixture
def broken_room(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which a module that a command needs raises what nobody expects."""
    (tmp_path / "sitecustomize.py").write_text(
        "import mcpproxy.cli.screen as s\n"
        "def boom(*a, **k): raise ZeroDivisionError('deep inside')\n"
        "s.Screen.show = boom\n"
    )
    yield {"PYTHONPATH": str(tmp_path)}


def test_what_nobody_expected_is_one_line_and_a_traceback_only_on_request(
    alone: Home, broken_room: dict[str, str]
) -> None:
    result = alone.run("config", "show", env=broken_room)
    assert result.returncode == 1
    assert "ZeroDivisionError: deep inside" in result.stderr
    assert len(result.stderr.splitlines()) == 2
    words = alone.words(("config", "show", "--log-level", "debug"))
    loud = subprocess.run(
        [Path(sys.executable).with_name("mcpproxy"), *words],
        env={**broken_room, "PATH": "/usr/bin:/bin", "HOME": str(alone.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert loud.returncode == 1
    assert "Traceback" in loud.stderr


def test_version_answers_without_any_configuration(tmp_path: Path) -> None:
    result = run(tmp_path, "--version")
    assert result.stdout.startswith("mcpproxy ")
    assert not (tmp_path / ".mcpproxy").exists()


def test_the_command_can_be_run_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcpproxy", "--version"]
    asked = subprocess.run(command, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert asked.stdout == run(tmp_path, "--version").stdout
