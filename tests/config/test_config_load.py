"""Where the file is looked for, and how it is made and read."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcpproxy.config.errors import ConfigAccessError, ConfigError
from mcpproxy.config.load import create_default, data_dir, find_path, load, open_config
from mcpproxy.config.models import Config

needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_option_wins_over_the_variable_and_that_over_the_home_directory(tmp_path: Path) -> None:
    env = {"HOME": "/home/me", "MCPPROXY_CONFIG": "/etc/m.json"}
    assert find_path(tmp_path / "x.json", env) == tmp_path / "x.json"
    assert find_path(None, env) == Path("/etc/m.json")
    assert find_path(None, {"HOME": "/home/me", "MCPPROXY_CONFIG": ""}) == Path("/home/me/.mcpproxy/mcp_config.json")


def test_the_data_directory_follows_the_same_order(tmp_path: Path) -> None:
    env = {"HOME": "/home/me", "MCPPROXY_DATA": "~/data"}
    assert data_dir(tmp_path, env) == tmp_path
    assert data_dir(None, env) == Path("/home/me/data")
    assert data_dir(None, {"HOME": "/home/me"}) == Path("/home/me/.mcpproxy")


def test_a_file_in_the_current_directory_is_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    (here / "mcp_config.json").write_text('{"tools_limit": 1}')
    monkeypatch.chdir(here)
    assert open_config(None, {"HOME": str(home)}).config == Config()


def test_the_default_file_is_made_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        loaded = open_config(None, {"HOME": str(tmp_path)})
    finally:
        os.umask(before)
    assert mode(loaded.path) == 0o600
    assert mode(loaded.path.parent) == 0o700
    assert loaded.warnings == ()
    assert list(loaded.path.parent.iterdir()) == [loaded.path]


def test_an_existing_default_file_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mcp_config.json"
    path.write_text('{"tools_limit": 3}')
    create_default(path)
    assert path.read_text() == '{"tools_limit": 3}'


def test_a_named_file_that_is_missing_is_an_error_not_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "typo.json"
    with pytest.raises(ConfigError, match=r"typo\.json does not load: there is no such file"):
        open_config(path, {})
    assert not path.exists()


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is a directory; name a file"):
        load(tmp_path)


@needs_permissions
def test_a_file_that_may_not_be_read_is_told_apart_from_a_wrong_one(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(ConfigAccessError, match="cannot be read: Permission denied"):
        load(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and fails to read")
def test_a_failing_disk_is_told_apart_from_a_wrong_file() -> None:
    with pytest.raises(ConfigAccessError, match=r"mem cannot be read: Input/output error\. Check its owner"):
        load(Path("/proc/self/mem"))


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"tools_limit": 0, "max_sessions": 0}')
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path} does not load, 2 problems:\n  tools_limit: 0 is not allowed")


@pytest.mark.parametrize(("bits", "able"), [(0o644, "read"), (0o640, "read"), (0o666, "change"), (0o620, "change")])
def test_a_file_open_to_others_is_pointed_out(tmp_path: Path, bits: int, able: str) -> None:
    path = tmp_path / "c.json"
    path.write_text("{}")
    path.chmod(bits)
    (warning,) = load(path).warnings
    assert f"other users can {able} it; run: chmod 600" in warning


def test_the_key_in_the_environment_wins_and_stays_out_of_the_document(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"api_key": "from-file"}')
    loaded = load(path, {"MCPPROXY_API_KEY": " from-env\n"})
    assert loaded.config.api_key == "from-env"
    assert loaded.document["api_key"] == "from-file"
    assert load(path, {"MCPPROXY_API_KEY": " "}).config.api_key == "from-file"


def test_a_key_in_the_environment_that_no_header_can_carry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("{}")
    with pytest.raises(ConfigError, match=r"\$MCPPROXY_API_KEY: \*\*\* is not allowed") as caught:
        load(path, {"MCPPROXY_API_KEY": "canary key"})
    assert "canary" not in str(caught.value)


def test_loading_imports_nothing_slow() -> None:
    script = (
        "import sys, mcpproxy.config.load, mcpproxy.config.write, mcpproxy.config.mask, mcpproxy.config.secrets;"
        "slow = {'pydantic', 'mcp', 'keyring', 'watchfiles', 'asyncio', 'fastapi'} & set(sys.modules);"
        "sys.exit(f'imported {slow}' if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
