"""Files that other programs wrote load as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.models import Duration, Server

GO_FILE = """
{
  "listen": ":8080",
  "data_dir": "~/.mcpproxy",
  "enable_socket": true,
  "enable_tray": true,
  "debug_search": false,
  "mcpServers": [
    {
      "name": "github-server",
      "url": "https://api.github.com/mcp",
      "protocol": "streamable-http",
      "headers": {"Authorization": "Bearer x"},
      "oauth": {"client_id": "id", "scopes": ["repo"], "pkce_enabled": true},
      "enabled": true,
      "quarantined": false,
      "created": "2025-06-01T10:00:00Z",
      "updated": "0001-01-01T00:00:00Z"
    },
    {
      "name": "local-python",
      "command": "python",
      "args": ["-m", "my_server"],
      "protocol": "stdio",
      "env": {"A": "1"},
      "working_dir": "",
      "url": "",
      "oauth": null,
      "enabled": false,
      "quarantined": true,
      "trust_mode": "auto",
      "isolation": {"enabled": true, "image": "python:3.11"},
      "created": "2025-06-01T10:00:00Z"
    },
    {"name": "detect", "url": "http://localhost:3001", "protocol": "auto", "enabled": true, "created": "x"}
  ],
  "top_k": 5,
  "tools_limit": 15,
  "tool_response_limit": 20000,
  "call_tool_timeout": "2m0s",
  "environment": {"inherit_system_safe": true},
  "logging": {"level": "info"},
  "api_key": "0123456789abcdef",
  "read_only_mode": true,
  "disable_management": false,
  "allow_server_add": true,
  "allow_server_remove": true,
  "enable_prompts": true,
  "check_server_repo": true,
  "docker_isolation": {"enabled": false},
  "registries": [{"id": "r"}],
  "features": {"enable_web_ui": true},
  "tls": {"enabled": false},
  "tokenizer": {"enabled": true},
  "enable_code_execution": false,
  "activity_retention_days": 30,
  "intent_declaration": {"strict_server_validation": true},
  "output_validation": {"mode": "warn", "max_bytes": 5242880, "max_depth": 64}
}
"""


def test_a_file_of_the_go_mcpproxy_loads() -> None:
    config, warnings = parse(GO_FILE.encode())
    remote, local, detect = config.servers
    assert (remote.protocol, local.protocol, detect.protocol) == ("http", "stdio", None)
    assert (local.url, local.working_dir, local.oauth) == (None, None, None)
    assert (local.enabled, local.quarantined, local.trust) == (False, True, "first_use")
    assert config.call_tool_timeout == Duration(120)
    assert not [text for text in warnings if "unknown key" in text]
    assert "top_k: is not used here; see tools_limit" in warnings
    assert "mcpServers[1].isolation: is not enforced here; the server runs as a child process" in warnings


def test_a_protection_that_is_not_enforced_is_said_to_be_so() -> None:
    _, warnings = parse({"read_only_mode": True, "docker_isolation": {"enabled": True}, "tls": {"enabled": True}})
    assert len(warnings) == 3
    assert all("is not enforced here" in text for text in warnings)


def test_a_claude_file_loads() -> None:
    document = {
        "globalShortcut": "Ctrl+Space",
        "mcpServers": {
            "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
            "remote": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer x"}},
            "events": {"type": "sse", "url": "https://mcp.example.com/sse"},
        },
    }
    config, warnings = parse(document)
    assert [(each.name, each.protocol) for each in config.servers] == [
        ("filesystem", None),
        ("remote", "http"),
        ("events", "sse"),
    ]
    assert warnings == ("globalShortcut: is not used here",)


def test_a_vs_code_file_with_comments_loads() -> None:
    config, warnings = parse(
        b"""{
        // who asks
        "inputs": [{"type": "promptString", "id": "token"}],
        "servers": {
          "gh": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${input:token}"},},
        }}"""
    )
    assert config.servers[0].name == "gh"
    assert warnings[0].startswith("inputs: is not used here; write ${env:NAME}")
    assert 'servers["gh"].headers: "${input:token}" is passed on as it stands' in warnings[1]


def test_a_cursor_file_loads() -> None:
    config, warnings = parse({"mcpServers": {"a": {"command": "x", "envFile": ".env", "env": {"K": "${env:K}"}}}})
    assert config.servers == (Server(name="a", command="x", env={"K": "${env:K}"}),)
    assert warnings == ('mcpServers["a"].envFile: is not read; write the values in env, or ${env:NAME}',)


@pytest.mark.parametrize("word", ["streamable-http", "streamable_http", "streamableHttp", "http"])
@pytest.mark.parametrize("key", ["type", "protocol", "transport", "transportType"])
def test_every_spelling_of_streamable_http_is_http(key: str, word: str) -> None:
    assert parse({"mcpServers": {"a": {"url": "http://h", key: word}}})[0].servers[0].protocol == "http"


@pytest.mark.parametrize("word", ["auto", "", None])
def test_an_open_protocol_is_detected(word: str | None) -> None:
    assert parse({"mcpServers": {"a": {"url": "http://h", "type": word}}})[0].servers[0].protocol is None


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        ({"command": "x", "disabled": True}, "enabled", False),
        ({"command": "x", "disabled": False}, "enabled", True),
        ({"command": "x", "cwd": "/srv"}, "working_dir", "/srv"),
        ({"serverUrl": "http://h"}, "url", "http://h"),
        ({"httpUrl": "http://h"}, "url", "http://h"),
        ({"command": "x", "excludeTools": ["t"]}, "disabled_tools", ("t",)),
        ({"command": "x", "enabledTools": ["t"]}, "enabled_tools", ("t",)),
    ],
)
def test_other_spellings_mean_the_same(entry: dict[str, Any], field: str, value: object) -> None:
    config, warnings = parse({"mcpServers": {"a": entry}})
    assert getattr(config.servers[0], field) == value
    assert warnings == ()


def test_two_spellings_that_agree_are_one() -> None:
    assert parse({"mcpServers": {"a": {"url": "http://h", "type": "streamable-http", "protocol": "http"}}})


def test_two_spellings_that_disagree_are_refused() -> None:
    with pytest.raises(ConfigError, match="enabled: it contradicts another key"):
        parse({"mcpServers": {"a": {"command": "x", "disabled": True, "enabled": True}}})


def test_both_shapes_mean_the_same() -> None:
    entries = {"a": {"command": "x"}, "b": {"url": "http://h"}}
    as_list = [{"name": name, **entry} for name, entry in entries.items()]
    assert parse({"mcpServers": entries})[0] == parse({"mcpServers": as_list})[0]


def test_the_key_of_a_server_wins_over_a_name_within() -> None:
    config, warnings = parse({"mcpServers": {"a": {"name": "b", "command": "x"}}})
    assert config.servers[0].name == "a"
    assert warnings == ('mcpServers["a"].name: is ignored; the server is called "a"',)


@pytest.mark.parametrize("empty", [None, [], {}])
def test_no_servers_is_no_mistake(empty: object) -> None:
    assert parse({"mcpServers": empty})[0].servers == ()


def test_null_is_as_if_the_key_were_absent() -> None:
    entry = dict.fromkeys(Server.__struct_fields__) | {"name": "a", "command": "x"}
    assert parse(json.dumps({"mcpServers": [entry]}).encode())[0].servers == (Server(name="a", command="x"),)
