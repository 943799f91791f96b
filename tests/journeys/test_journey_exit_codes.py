"""How does `serve` say that it cannot start? One clear line on stderr, and a code that a script can act on."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.journeys.support import run

from mcpproxy.listen import open_socket

Result = subprocess.CompletedProcess[str]
Serve = Callable[..., Result]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Runs `mcpproxy serve` on a good configuration, unless another is given."""
    good = config(tmp_path, '{"listen": "127.0.0.1:0"}', "good.json")

    def start(*options: str | Path) -> Result:
        result = run(tmp_path, "serve", "--config", good, "--data-dir", tmp_path / "data", *options)
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result

    return start


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir(mode=0o700)
    return tmp_path / "data" / "mcpproxy.db"


def config(tmp_path: Path, text: str, name: str = "mcp_config.json") -> Path:
    path = tmp_path / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_port_in_use_exits_6_and_names_it(serve: Serve) -> None:
    with open_socket("127.0.0.1:0") as taken:
        port = taken.getsockname()[1]
        result = serve("--listen", f"127.0.0.1:{port}")
    assert result.returncode == 6
    assert f"port {port} on 127.0.0.1 is in use" in result.stderr
    assert "--listen" in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"tools_limit": 500}', ["tools_limit", "500", "1", "100"]),
        ('{"output_validation": {"mode": "strickt"}}', ["output_validation.mode", '"strickt"', '"off"', '"strict"']),
        ('{"mcpServers": [{"name": "a", "command": "x", "protocol": "htp"}]}', ["protocol", '"htp"', '"sse"']),
        ('{"mcpServers": ', ["mcp_config.json"]),
    ],
)
def test_an_invalid_configuration_exits_4_and_names_path_value_and_choices(
    serve: Serve, tmp_path: Path, text: str, said: list[str]
) -> None:
    result = serve("--config", config(tmp_path, text))
    assert result.returncode == 4
    for word in said:
        assert word in result.stderr


def test_a_named_configuration_that_is_not_there_exits_4_and_is_not_made(serve: Serve, tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    result = serve("--config", missing)
    assert result.returncode == 4
    assert str(missing) in result.stderr
    assert not missing.exists()


def test_an_unreadable_configuration_exits_5(serve: Serve, tmp_path: Path) -> None:
    path = config(tmp_path, "{}")
    path.chmod(0)
    result = serve("--config", path)
    assert result.returncode == 5
    assert f"{path} cannot be read: Permission denied" in result.stderr


def test_a_data_directory_that_cannot_be_made_exits_5(serve: Serve, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    result = serve("--data-dir", closed / "data")
    assert result.returncode == 5
    assert str(closed / "data") in result.stderr


def test_a_database_locked_by_another_process_exits_3(serve: Serve, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("CREATE TABLE busy (x)")
        other.execute("BEGIN EXCLUSIVE")
        result = serve()
    assert result.returncode == 3
    assert "mcpproxy.db is locked by another process" in result.stderr


def test_a_damaged_database_exits_3_and_is_left_as_it_is(serve: Serve, database: Path) -> None:
    database.write_bytes(b"this is not a database" * 100)
    result = serve()
    assert result.returncode == 3
    assert "mcpproxy.db cannot be read" in result.stderr
    assert database.read_bytes().startswith(b"this is not")


def test_an_unreadable_database_exits_3(serve: Serve, database: Path) -> None:
    database.touch(mode=0)
    result = serve()
    assert result.returncode == 3
    assert "mcpproxy.db cannot be opened (Permission denied)" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--nope"], "--nope"), (["--listen", "nonsense"], '"nonsense"'), (["--log-level", "loud"], "debug, info")],
)
def test_a_mistake_on_the_command_line_exits_2(serve: Serve, options: list[str], said: str) -> None:
    result = serve(*options)
    assert result.returncode == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("options", "exit_code", "code"),
    [
        (["--nope"], 2, "USAGE"),
        (["--config", "missing.json"], 4, "CONFIG_INVALID"),
        (["--data-dir", "good.json"], 5, "PERMISSION"),
    ],
)
def test_in_json_mode_the_complaint_is_one_line_of_json(
    serve: Serve, options: list[str], exit_code: int, code: str
) -> None:
    result = serve("-o", "json", *options)
    assert result.returncode == exit_code
    (line,) = result.stderr.splitlines()
    complaint = json.loads(line)
    assert complaint["code"] == code
    assert complaint["message"]
