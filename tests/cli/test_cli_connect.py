"""Other clients are pointed at the proxy, and their files survive it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import make_home
from tests.cli.terminal import Home

from mcpproxy.cli.connect import command
from mcpproxy.cli.connect.clients import CLIENTS, Target
from mcpproxy.cli.connect.files import backup_of, entry_in, with_entry
from mcpproxy.cli.errors import Failure
from mcpproxy.cli.options import Options
from mcpproxy.cli.session import Session

URL = "http://127.0.0.1:18081/mcp"
JSON_CLIENTS = [name for name in CLIENTS if name != "codex"]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session of a user whose home is the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    home = make_home(tmp_path, listen="127.0.0.1:18081")
    return Session(Options(config=home.config, data_dir=home.data, output="json"))


def connect(session: Session, name: str, **more: Any) -> None:
    command.connect(session, name, **{"token": None, "stdio": False, "yes": True, "preview": False, **more})


def content(name: str) -> dict[str, Any]:
    client = CLIENTS[name]
    text = client.path().read_text()
    return tomllib.loads(text) if client.is_toml else json.loads(text)


EXPECTED: dict[str, Any] = {
    "claude-code": {"type": "http", "url": URL},
    "cursor": {"url": URL},
    "vscode": {"type": "http", "url": URL},
    "gemini": {"httpUrl": URL},
    "codex": {"url": URL},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_client_gets_the_entry_that_it_understands(session: Session, name: str) -> None:
    connect(session, name)
    assert content(name) == {CLIENTS[name].block: {"mcpproxy": EXPECTED[name]}}
    assert CLIENTS[name].path().stat().st_mode & 0o777 == 0o600


def test_no_backup_is_promised_of_a_file_that_was_not_there(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session.screen, "output", "table")
    connect(session, "cursor")
    assert "There was none before; --undo removes it." in capsys.readouterr().err
    command.undo(session, "cursor", yes=True)
    assert not CLIENTS["cursor"].path().exists()


def test_claude_desktop_starts_the_proxy_itself(session: Session) -> None:
    connect(session, "claude-desktop")
    entry = content("claude-desktop")["mcpServers"]["mcpproxy"]
    assert Path(entry["command"]).name == "mcpproxy"
    assert entry["args"][:2] == ["serve", "--stdio"]
    assert "--config" in entry["args"]


@pytest.mark.parametrize("name", CLIENTS)
def test_undo_gives_the_file_back_byte_for_byte(session: Session, name: str) -> None:
    path = CLIENTS[name].path()
    before = '{\n    "z": 1.50,\n    "BLOCK": {"other": {"command": "é"}},\n    "a": [ ]\n}'
    before = before.replace("BLOCK", CLIENTS[name].block)
    if CLIENTS[name].is_toml:
        before = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"   # keep\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before)
    path.chmod(0o640)
    connect(session, name)
    assert entry_in(CLIENTS[name], path.read_text()) is not None
    assert path.stat().st_mode & 0o777 == 0o640
    connect(session, name)
    command.undo(session, name, yes=True)
    assert path.read_text() == before
    assert not backup_of(path).exists()


@pytest.mark.parametrize("name", CLIENTS)
def test_undo_of_a_file_that_was_not_there_takes_it_away(session: Session, name: str) -> None:
    connect(session, name)
    command.undo(session, name, yes=True)
    assert not CLIENTS[name].path().exists()


@pytest.mark.parametrize("name", ["cursor", "codex"])
def test_undo_keeps_what_was_changed_since(session: Session, name: str) -> None:
    client = CLIENTS[name]
    connect(session, name)
    more = '\n[mcp_servers.later]\nurl = "http://later"\n' if client.is_toml else None
    text = client.path().read_text()
    if more is None:
        document = json.loads(text)
        document["mcpServers"]["later"] = {"url": "http://later"}
        client.path().write_text(json.dumps(document))
    else:
        client.path().write_text(text + more)
    command.undo(session, name, yes=True)
    assert content(name) == {client.block: {"later": {"url": "http://later"}}}


def test_everything_else_in_the_file_stays(session: Session) -> None:
    path = CLIENTS["claude-code"].path()
    path.write_text(json.dumps({"numStartups": 4, "mcpServers": {"x": {"command": "y"}}, "projects": {"/p": {}}}))
    connect(session, "claude-code")
    document = content("claude-code")
    assert list(document) == ["numStartups", "mcpServers", "projects"]
    assert list(document["mcpServers"]) == ["x", "mcpproxy"]


def test_what_the_user_added_to_our_entry_stays(session: Session) -> None:
    connect(session, "codex")
    path = CLIENTS["codex"].path()
    path.write_text(path.read_text() + "\n" + CLIENTS["codex"].permissions() + "\n")
    before = path.read_text()
    connect(session, "codex")
    assert path.read_text() == before
    changed = with_entry(CLIENTS["codex"], before, {"url": "http://elsewhere/mcp"})
    entry = tomllib.loads(changed)["mcp_servers"]["mcpproxy"]
    assert entry["url"] == "http://elsewhere/mcp"
    assert entry["tools"]["call_tool_read"] == {"approval_mode": "approve"}
    assert tomllib.loads(with_entry(CLIENTS["codex"], before, None)) == {}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("vscode", '{\n  // mine\n  "servers": {}\n}', "it has comments"),
        ("cursor", '{"mcpServers": ', "cannot be read"),
        ("cursor", '{"mcpServers": [1]}', "not an object"),
        ("codex", 'mcp_servers = { mcpproxy = { url = "x" } }\n', "its form is unusual"),
        ("codex", "= nonsense", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(session: Session, name: str, text: str, said: str) -> None:
    path = CLIENTS[name].path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(Failure, match=said):
        connect(session, name)
    assert path.read_text() == text


def test_a_link_to_the_real_file_stays_a_link(session: Session, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    path = CLIENTS["cursor"].path()
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    connect(session, "cursor")
    assert path.is_symlink()
    assert "mcpproxy" in real.read_text()


def test_preview_writes_nothing(session: Session) -> None:
    connect(session, "gemini", preview=True)
    assert not CLIENTS["gemini"].path().exists()


def test_where_agents_need_a_token_one_must_be_given(tmp_path: Path, session: Session) -> None:
    session.loaded.path.write_text(json.dumps({"listen": "0.0.0.0:18081", "api_key": "k" * 20}))
    fresh = Session(session.options)
    with pytest.raises(Failure, match="agents need a token"):
        connect(fresh, "cursor")
    connect(fresh, "cursor", token="mcpp_secret")
    entry = content("cursor")["mcpServers"]["mcpproxy"]
    assert entry == {"url": URL, "headers": {"Authorization": "Bearer mcpp_secret"}}
    connect(fresh, "codex", token="mcpp_secret")
    assert content("codex")["mcp_servers"]["mcpproxy"]["http_headers"] == {"Authorization": "Bearer mcpp_secret"}


@pytest.mark.parametrize("name", CLIENTS)
def test_permissions_let_reads_pass_and_never_the_destructive(name: str) -> None:
    snippet = CLIENTS[name].permissions()
    assert "call_tool_destructive" in snippet or name == "cursor"
    parsers: dict[str, Callable[[str], Any]] = {"gemini": tomllib.loads, "codex": tomllib.loads}
    if name == "claude-desktop":
        return
    parsed = parsers.get(name, json.loads)(snippet)
    match name:
        case "claude-code":
            assert "mcp__mcpproxy__call_tool_read" in parsed["permissions"]["allow"]
            assert "mcp__mcpproxy__call_tool_destructive" in parsed["permissions"]["ask"]
        case "cursor":
            assert "mcpproxy:call_tool_read" in parsed["mcpAllowlist"]
            assert not any("write" in name or "destructive" in name for name in parsed["mcpAllowlist"])
        case "vscode":
            assert parsed["chat.tools.eligibleForAutoApproval"]["call_tool_destructive"] is False
        case "gemini":
            decisions = {tool: rule["decision"] for rule in parsed["rule"] for tool in rule["toolName"]}
            assert decisions["call_tool_read"] == "allow"
            assert decisions["call_tool_destructive"] == "ask_user"
        case "codex":
            tools = parsed["mcp_servers"]["mcpproxy"]["tools"]
            assert tools["call_tool_read"]["approval_mode"] == "approve"
            assert tools["call_tool_destructive"]["approval_mode"] == "prompt"


def test_the_forms_are_those_that_the_documentation_of_intent_shows() -> None:
    page = (Path(__file__).parents[2] / "docs" / "intent.md").read_text()
    for name in ("claude-code", "cursor", "vscode"):
        assert CLIENTS[name].permissions() in page


def test_an_entry_for_stdio_names_no_address() -> None:
    entry = CLIENTS["cursor"].entry(Target(None, ("mcpproxy", "serve", "--stdio")))
    assert entry == {"command": "mcpproxy", "args": ["serve", "--stdio"]}


def test_the_command_asks_shows_the_change_and_hides_the_token(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    with home.terminal("connect", "cursor", "--token", "mcpp_canary_0a1b2c") as terminal:
        terminal.until("[y/N]")
        terminal.type("y\n")
        assert terminal.end() == 0
        assert "+" in terminal.plain
        assert "Permissions" in terminal.plain
        assert "mcpp_canary_0a1b2c" not in terminal.plain
    assert "mcpp_canary_0a1b2c" in (tmp_path / ".cursor/mcp.json").read_text()
    assert "Undone" in home.run("connect", "cursor", "--undo", "--yes").stderr
    assert home.run("connect", "cursor", "--undo", "--yes").returncode == 1
    assert home.run("connect", "emacs").returncode == 2
    nothing: Home = home
    assert nothing.run("connect", "codex").returncode == 0
    assert not (tmp_path / ".codex").exists()
