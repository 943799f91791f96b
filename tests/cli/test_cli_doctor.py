"""The doctor finds what is wrong, says what to do, and repairs what is safe to repair."""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import make_home
from tests.cli.terminal import Home
from tests.cli.test_cli_activity import fill
from tests.journeys.support import tiny

from mcpproxy.cli.doctor.tools import check_tools
from mcpproxy.cli.options import Options
from mcpproxy.cli.session import Session


def findings(home: Home, *words: str, exit_code: int = 0) -> list[dict[str, Any]]:
    result = home.run("doctor", *words, "-o", "json")
    assert result.returncode == exit_code, result.stdout + result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return found


def levels(found: list[dict[str, Any]]) -> dict[str, str]:
    return {finding["area"]: finding["level"] for finding in found}


def test_a_sound_installation_has_nothing_broken(daemon: Home) -> None:
    found = levels(findings(daemon))
    assert found["config"] == found["data"] == found["database"] == found["log"] == found["daemon"] == "ok"
    assert found["echo"] == found["demo"] == "ok"
    assert "Nothing is broken." in daemon.shown("doctor", "--quick")


def test_without_a_daemon_every_server_is_tried(tmp_path: Path) -> None:
    servers = {
        "good": tiny(),
        "lost": {"command": "no-such-command"},
        "dies": {"command": sys.executable, "args": ["-c", "raise SystemExit('no licence')"]},
        "off": {"command": "x", "enabled": False},
        "needs": {"command": "x", "env": {"K": "${env:SURELY_NOT_SET_42}"}},
    }
    found = findings(make_home(tmp_path, servers), exit_code=1)
    by_area = {finding["area"]: finding for finding in found}
    assert by_area["good"]["level"] == "ok"
    assert "started in" in by_area["good"]["text"]
    assert "'no-such-command' is not found" in by_area["lost"]["text"]
    assert "no licence" in by_area["dies"]["text"]
    assert by_area["off"]["level"] == "note"
    assert "SURELY_NOT_SET_42" in by_area["secrets"]["text"]
    assert all(finding["fix"] for finding in found if finding["level"] == "broken" and finding["area"] != "secrets")


def test_a_server_whose_tools_all_wait_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    demo = {"command": sys.executable, "args": ["-m", "mcpproxy.demo"], "trust": "manual"}
    (found,) = (each for each in findings(make_home(tmp_path, {"demo": demo})) if each["area"] == "demo")
    assert found["level"] == "note"
    assert "wait for your approval" in found["text"]
    assert found["fix"] == "Look at them: mcpproxy tools diff demo"


def test_open_modes_are_found_and_fixed(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    home.config.chmod(0o644)
    home.data.chmod(0o755)
    found = [finding for finding in findings(home) if finding["level"] == "warning"]
    assert {finding["area"] for finding in found} == {"config", "data"}
    assert all(finding["fixable"] for finding in found)
    assert any(finding["fixed"] for finding in findings(home, "--fix"))
    assert home.config.stat().st_mode & 0o777 == 0o600
    assert home.data.stat().st_mode & 0o777 == 0o700
    assert not [finding for finding in findings(home) if finding["level"] == "warning"]


def test_an_invalid_configuration_is_the_first_and_only_finding(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    home.config.write_text('{"tools_limit": 500}')
    (found,) = findings(home, exit_code=1)
    assert found["area"] == "config"
    assert "tools_limit" in found["text"]


def test_a_port_of_somebody_else_is_found(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        home = make_home(tmp_path, listen=f"127.0.0.1:{other.getsockname()[1]}")
        assert levels(findings(home, exit_code=1))["port"] == "broken"


def test_an_altered_log_is_found_and_left_out_on_request(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    fill(home)
    with closing(sqlite3.connect(home.data / "mcpproxy.db")) as database:
        database.execute("UPDATE activity SET tool_name = 'x' WHERE tool_name = 'tool_9'")
        database.commit()
    found = next(finding for finding in findings(home, exit_code=1) if finding["area"] == "log")
    assert found["level"] == "broken"
    assert "was edited" in found["text"]
    assert "log" not in levels(findings(home, "--quick"))


def test_a_damaged_database_is_found(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    (home.data / "mcpproxy.db").write_bytes(b"this is not a database" * 300)
    assert levels(findings(home, exit_code=1))["database"] == "broken"


def test_schemas_that_do_not_compile_and_equal_names_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpproxy.catalog.tool import parse_tool
    from mcpproxy.cli.tools import shelf

    tools = [
        parse_tool("a", b'{"name": "get", "inputSchema": {"type": "nonsense"}}'),
        parse_tool("b", b'{"name": "Get", "outputSchema": {"$ref": "https://remote.example/x"}}'),
        parse_tool("c", b'{"name": "fine", "inputSchema": {"type": "object"}}'),
    ]
    monkeypatch.setattr(shelf, "known_tools", lambda session: tools)
    home = make_home(tmp_path)
    found = list(check_tools(Session(Options(config=home.config, data_dir=home.data))))
    texts = "\n".join(finding.text for finding in found)
    assert "the input schema of a:get is not checked against" in texts
    assert "the output schema of b:Get is not checked against" in texts
    assert "these have the same name: a:get, b:Get" in texts
    assert "c:fine" not in texts
