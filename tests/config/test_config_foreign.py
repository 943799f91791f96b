"""Servers in the files of other programs, wherever those keep them."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpproxy.config.errors import ConfigError
from mcpproxy.config.foreign import Found, files_of, servers_in
from mcpproxy.config.models import Server

NOTES = {"command": "notes", "args": ["--all"]}
TRACKER = {"type": "http", "url": "https://tracker.example.com/mcp"}


def named(document: Any) -> dict[str, Found]:
    return {found.name: found for found in servers_in(json.dumps(document).encode())}


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"notes": NOTES, "tracker": TRACKER}},
        {"mcpServers": [{"name": "notes", **NOTES}, {"name": "tracker", **TRACKER}]},
        {"servers": {"notes": NOTES, "tracker": TRACKER}, "inputs": []},
        {"editor.fontSize": 12, "mcp": {"servers": {"notes": NOTES, "tracker": TRACKER}}},
        {"numStartups": 3, "mcpServers": {"notes": NOTES}, "projects": {"/srv": {"mcpServers": {"tracker": TRACKER}}}},
    ],
    ids=["claude", "mcpproxy", "vscode", "vscode settings", "claude code"],
)
def test_servers_are_found_in_the_files_of_every_program(document: Any) -> None:
    found = named(document)
    assert found["notes"].server == Server(name="notes", command="notes", args=("--all",))
    assert found["tracker"].server == Server(name="tracker", url="https://tracker.example.com/mcp", protocol="http")


def test_one_entry_that_cannot_be_taken_over_leaves_the_others_alone() -> None:
    found = named({"mcpServers": {"notes": NOTES, "a:b": NOTES, "both": {**NOTES, **TRACKER}}})
    assert found["notes"].problems == ()
    assert found["a:b"].server is None
    assert "without ':'" in found["a:b"].problems[0]
    assert "command" in found["both"].problems[0]


def test_what_is_not_used_here_is_said() -> None:
    found = named({"mcpServers": {"notes": {**NOTES, "autoApprove": ["x"]}}})
    assert found["notes"].warnings == ("autoApprove: is not used here",)


@pytest.mark.parametrize("text", ["{}", '{"mcpServers": {}}', "[]", "not json"])
def test_a_text_without_servers_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        servers_in(text.encode())


def test_only_files_with_servers_are_offered(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": NOTES}}))
    (tmp_path / ".claude.json").write_text('{"numStartups": 3}')
    (found,) = files_of(tmp_path)
    assert (found.program, found.path) == ("Cursor", tmp_path / ".cursor" / "mcp.json")
    assert [each.name for each in found.servers] == ["notes"]
