"""The operator's file is changed, never rearranged."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from mcpproxy.config import files
from mcpproxy.config.errors import ConfigAccessError, ConfigError
from mcpproxy.config.load import load, parse
from mcpproxy.config.models import Duration, OAuth, Server
from mcpproxy.config.write import merge_settings, remove_server, set_server, update, with_api_key

LIST_FILE = """{
    "zeta": {"b": 1, "a": [0.5, null]},
    "mcpServers": [
        {"created": "2025", "type": "streamable-http", "name": "gh", "url": "https://x/mcp", "x": 1},
        {"name": "fs", "command": "npx", "args": ["-y"]}
    ],
    "tools_limit": 7,
    "alpha": "ünïcode"
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mcp_config.json"
    path.write_text(LIST_FILE)
    return path


def order(value: Any) -> Any:
    """The keys of every object in their order."""
    if isinstance(value, dict):
        return [(key, order(item)) for key, item in value.items()]
    return [order(item) for item in value] if isinstance(value, list) else value


def test_a_change_keeps_unknown_keys_their_order_and_the_indent(path: Path) -> None:
    update(path, lambda document: document.update(tools_limit=8))
    text = path.read_text()
    assert order(json.loads(text)) == order(json.loads(LIST_FILE) | {"tools_limit": 8})
    assert text.startswith('{\n    "zeta"') and "ünïcode" in text and text.endswith("}\n")


def test_the_file_ends_up_private_and_nothing_is_left_beside_it(path: Path) -> None:
    path.chmod(0o644)
    update(path, lambda document: document.update(tools_limit=8))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_change_that_changes_nothing_leaves_the_file_alone(path: Path) -> None:
    before = path.stat()
    update(path, lambda document: document.update(tools_limit=7))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_would_not_load_is_not_written(path: Path) -> None:
    with pytest.raises(ConfigError, match="tools_limit: 0 is not allowed") as caught:
        update(path, lambda document: document.update(tools_limit=0))
    assert caught.value.path == path
    assert path.read_text() == LIST_FILE


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles"
    elsewhere.mkdir()
    target = elsewhere / "real.json"
    path.rename(target)
    path.symlink_to(target)
    update(path, lambda document: document.update(tools_limit=9))
    assert path.is_symlink() and json.loads(target.read_text())["tools_limit"] == 9


def test_windows_line_ends_stay(path: Path) -> None:
    path.write_bytes(LIST_FILE.replace("\n", "\r\n").encode())
    update(path, lambda document: document.update(tools_limit=9))
    data = path.read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n") > 5


def test_a_file_with_comments_is_not_written_over(path: Path) -> None:
    path.write_text('{\n  // mine\n  "tools_limit": 7\n}')
    with pytest.raises(ConfigError, match="it has comments, and writing it would lose them"):
        update(path, lambda document: document.update(tools_limit=8))
    assert "// mine" in path.read_text()


def test_a_crash_while_writing_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mcpproxy.config.files.os.fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        update(path, lambda document: document.update(tools_limit=8))
    assert path.read_text() == LIST_FILE
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_that_takes_no_files_is_a_matter_of_access(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(ConfigAccessError, match="cannot be written: Permission denied"):
        update(path, lambda document: document.update(tools_limit=8))


def test_a_writer_that_hangs_is_not_waited_for_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOCK_WAIT", 0.05)
    with files.locked(path), pytest.raises(ConfigAccessError, match="another program has held the lock"):
        update(path, lambda document: document.update(tools_limit=8))


def _add(path: Path, first: int) -> None:
    for number in range(first, first + 10):
        update(path, lambda document, name=f"s{number}": set_server(document, Server(name=name, command="x")))  # type: ignore[misc]


def test_two_writers_at_once_lose_nothing(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add, args=(path, first)) for first in (0, 100, 200)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    names = {server.name for server in load(path).config.servers}
    assert names == {"gh", "fs", *(f"s{first + number}" for first in (0, 100, 200) for number in range(10))}


def test_a_new_server_is_appended_with_what_differs_from_the_defaults() -> None:
    document = json.loads(LIST_FILE)
    server = Server(
        name="new",
        url="http://h",
        call_tool_timeout=Duration(90),
        oauth=OAuth(scopes=("a",)),
        enabled=False,
        headers={"X": "1"},
    )
    set_server(document, server)
    assert document["mcpServers"][-1] == {
        "name": "new",
        "url": "http://h",
        "headers": {"X": "1"},
        "enabled": False,
        "call_tool_timeout": "90s",
        "oauth": {"scopes": ["a"]},
    }
    assert parse(document)[0].servers[-1] == server


def test_changing_a_server_touches_only_what_differs() -> None:
    document = json.loads(LIST_FILE)
    set_server(document, Server(name="gh", url="https://x/mcp", protocol="sse", enabled=False))
    assert list(document["mcpServers"][0].items()) == [
        ("created", "2025"),
        ("type", "sse"),
        ("name", "gh"),
        ("url", "https://x/mcp"),
        ("x", 1),
        ("enabled", False),
    ]


def test_the_shape_and_the_words_of_the_file_stay() -> None:
    document = {"servers": {"a": {"command": "x", "disabled": True}}, "inputs": []}
    set_server(document, Server(name="a", command="y"))
    set_server(document, Server(name="b", command="z"))
    assert document == {
        "servers": {"a": {"command": "y", "disabled": False}, "b": {"command": "z"}},
        "inputs": [],
    }


def test_unknown_keys_within_oauth_stay() -> None:
    document = {"mcpServers": [{"name": "a", "url": "http://h", "oauth": {"pkce_enabled": True, "clientId": "i"}}]}
    set_server(document, Server(name="a", url="http://h", oauth=OAuth(client_id="j", scopes=("s",))))
    assert document["mcpServers"][0]["oauth"] == {"pkce_enabled": True, "clientId": "j", "scopes": ["s"]}


def test_a_setting_that_is_taken_back_leaves_the_file() -> None:
    document = {"mcpServers": [{"name": "a", "command": "x", "working_dir": "/srv", "protocol": "stdio"}]}
    set_server(document, Server(name="a", command="x"))
    assert document == {"mcpServers": [{"name": "a", "command": "x"}]}


@pytest.mark.parametrize("empty", [{}, {"mcpServers": None}, {"mcpServers": []}])
def test_the_first_server_makes_the_list(empty: dict[str, Any]) -> None:
    set_server(empty, Server(name="a", command="x"))
    assert empty == {"mcpServers": [{"name": "a", "command": "x"}]}


def test_a_server_is_removed_in_either_shape() -> None:
    as_list, as_object = json.loads(LIST_FILE), {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}
    assert remove_server(as_list, "gh") and not remove_server(as_list, "gh")
    assert [item["name"] for item in as_list["mcpServers"]] == ["fs"]
    assert remove_server(as_object, "a") and not remove_server(as_object, "a")
    assert as_object == {"mcpServers": {"b": {"command": "y"}}}


def test_a_patch_merges_blocks_and_null_removes() -> None:
    document = {"activity": {"max_records": 1, "mine": 2}, "tools_limit": 3}
    merge_settings(document, {"activity": {"max_records": 5}, "tools_limit": None, "log_level": "debug"})
    assert document == {"activity": {"max_records": 5, "mine": 2}, "log_level": "debug"}


def test_a_key_is_generated_once_and_saved(path: Path) -> None:
    first = with_api_key(load(path, {}), {})
    assert re.fullmatch(r"[0-9a-f]{64}", first.config.api_key)
    assert with_api_key(load(path, {}), {}).config.api_key == first.config.api_key
    assert json.loads(path.read_text())["zeta"] == {"b": 1, "a": [0.5, None]}


def test_an_empty_key_is_no_key(path: Path) -> None:
    path.write_text('{"api_key": ""}')
    assert len(with_api_key(load(path, {}), {}).config.api_key) == 64


def test_the_key_of_a_quicker_process_holds_for_both(path: Path) -> None:
    late = load(path, {})
    first = with_api_key(load(path, {}), {})
    assert with_api_key(late, {}).config.api_key == first.config.api_key


def test_a_key_from_the_environment_is_never_written(path: Path) -> None:
    env = {"MCPPROXY_API_KEY": "from-the-environment"}
    loaded = with_api_key(load(path, env), env)
    update(path, lambda document: document.update(tools_limit=8), env)
    assert loaded.config.api_key == "from-the-environment"
    assert "from-the-environment" not in path.read_text()


def test_a_key_that_cannot_be_saved_holds_for_this_run_and_says_so(path: Path) -> None:
    path.write_text("{} // mine")
    loaded = with_api_key(load(path, {}), {})
    assert len(loaded.config.api_key) == 64
    assert loaded.config.api_key not in path.read_text()
    assert "the new API key is not saved and holds until this process ends" in loaded.warnings[-1]
    assert loaded.config.api_key not in loaded.warnings[-1]


def test_a_file_keeps_its_owner(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, 12345, 12345)
    update(path, lambda document: document.update(tools_limit=8))
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12345)
