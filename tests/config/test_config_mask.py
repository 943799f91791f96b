"""No secret is shown or stored, and the rest stays readable."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from mcpproxy.config.load import parse
from mcpproxy.config.mask import Masker, masked, secrets_of, unmask
from mcpproxy.config.models import Config, OAuth, Server, plain
from mcpproxy.config.sniff import arg_pieces, env_is_secret, is_secret_name, joined, looks_secret, mask_url

CANARIES: dict[str, Any] = {
    "api_key": "canary-api-key",
    "storage": "postgresql://user:canary-storage@host/db?sslpassword=canary-ssl",
    "otel_endpoint": "https://user:canary-otel@collector",
    "mcpServers": [
        {
            "name": "http",
            "url": "https://me:canary%2Durl@host/canary0a1b2c3d4e5f6g7h8/mcp?token=canary-query&page=2",
            "headers": {"Authorization": "Bearer canary-header", "X-Thing": "canary-thing", "Accept": "text/plain"},
            "oauth": {"client_id": "public-id", "client_secret": "canary-oauth"},
        },
        {
            "name": "stdio",
            "command": "run --password canary-command",
            "args": [
                "--token",
                "canary-flag",
                "--api-key=canary-equals",
                "-H",
                "Authorization: Bearer canary-curl",
                "-e",
                "THING=canary-docker",
                "SECRET_KEY=canary-assign",
                "https://x/?apikey=canary-arg-url",
                '{"clientSecret": "canary-json"}',
                "exec tool --pat canary-line",
                "ghp_canary0123456789abcdefghij",
            ],
            "env": {"THING": "canary-env", "DATABASE_URL": "postgres://u:canary-db@h/d", "NODE_ENV": "production"},
        },
    ],
}


@pytest.fixture
def config() -> Config:
    return parse(CANARIES)[0]


def test_what_is_shown_holds_no_canary(config: Config) -> None:
    shown = json.dumps(masked(config))
    assert "canary" not in shown
    assert "canary" not in json.dumps([masked(server) for server in config.servers])


def test_what_is_shown_stays_readable(config: Config) -> None:
    http, stdio = masked(config)["mcpServers"]
    assert http["url"] == "https://me:***@host/***/mcp?token=***&page=2"
    assert http["headers"] == {"Authorization": "Bearer ***", "X-Thing": "***", "Accept": "text/plain"}
    assert http["oauth"]["client_id"] == "public-id"
    assert stdio["args"][:4] == ["--token", "***", "--api-key=***", "-H"]
    assert stdio["env"]["NODE_ENV"] == "production"


def test_what_is_shown_without_secrets_is_the_configuration() -> None:
    config, _ = parse(
        {"call_tool_timeout": "3s", "mcpServers": [{"name": "a", "command": "x", "args": ["-y", "p@1.2"]}]}
    )
    assert masked(config) == plain(config)


def test_a_reference_is_no_secret() -> None:
    server = Server(name="a", command="x", env={"TOKEN": "${env:T}"}, headers={"Authorization": "Bearer ${keyring:T}"})
    assert masked(server) == plain(server)
    assert secrets_of(server) == frozenset()


def test_every_canary_is_masked_in_any_text(config: Config) -> None:
    masker = Masker()
    masker.learn("config", secrets_of(config))
    log = json.dumps(CANARIES)
    assert "canary" not in masker.mask(log)
    assert b"canary" not in masker.mask_bytes(log.encode())
    assert "canary-url" not in masker.mask("the password, decoded, is canary-url")
    assert "production" in masker.mask(log)


def test_a_masker_that_knows_nothing_changes_nothing() -> None:
    masker = Masker()
    assert masker.mask("text") == "text"
    assert masker.mask_bytes(b"text") == b"text"


@pytest.mark.parametrize("value", ["", "a", "12345", "true", "false", "localhost", "production", "/usr/bin", "  "])
def test_trivial_values_are_not_masked_since_that_destroys_logs(value: str) -> None:
    masker = Masker()
    masker.learn("x", [value])
    text = f"true: a production server at localhost:12345 runs /usr/bin {value}"
    assert masker.mask(text) == text


@pytest.mark.parametrize(
    "value", ['quo"te-secret', "back\\slash-secret", "ünïcode-secret", "sla/sh+secret", "new\nline-secret"]
)
def test_a_secret_is_found_however_it_is_written(value: str) -> None:
    masker = Masker()
    masker.learn("x", [value])
    for written in (value, json.dumps(value), json.dumps(value, ensure_ascii=False), quote(value, safe="")):
        assert "secret" not in masker.mask(f"before {written} after")
        assert b"secret" not in masker.mask_bytes(f"before {written} after".encode())


def test_a_key_of_many_lines_is_found_line_by_line() -> None:
    masker = Masker()
    masker.learn("x", ["-----BEGIN KEY-----\nabcdefghijklmnopqrstuvwxyz\n-----END KEY-----"])
    assert masker.mask("log: abcdefghijklmnopqrstuvwxyz") == "log: ***"
    assert masker.mask("-----BEGIN KEY-----") == "-----BEGIN KEY-----"


def test_a_secret_within_a_secret_leaves_no_rest() -> None:
    masker = Masker()
    masker.learn("x", ["abcdef", "abcdef-more-secret"])
    assert masker.mask("abcdef-more-secret abcdef") == "*** ***"


def test_replaced_secrets_stay_hidden_one_turn_and_then_do_not_pile_up() -> None:
    masker = Masker()
    for turn in range(1000):
        masker.learn("oauth:a", [f"token-number-{turn}"])
    assert masker.mask("token-number-999 token-number-998 token-number-997") == "*** *** token-number-997"


def test_sources_do_not_forget_each_others_secrets() -> None:
    masker = Masker()
    masker.learn("a", ["secret-of-a"])
    masker.learn("b", ["secret-of-b"])
    masker.learn("b", [])
    masker.learn("b", [])
    assert masker.mask("secret-of-a") == "***"


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN",
        "GITHUB_TOKEN",
        "apiKey",
        "api-key",
        "--api_key",
        "AWS_SECRET_ACCESS_KEY",
        "dbPassword",
        "sslpassword",
        "PAT",
        "X-Auth",
    ],
)
def test_names_of_credentials_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", "path pattern author keyboard max_tokens --verbose compass spin".split())
def test_other_names_are_left_alone(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "value",
    [
        "ghp_abcdefghijkl",
        "sk-abcdefghijklmnop",
        "xoxb-1234567890-abc",
        "eyJhbGciOiJIUzI1NiJ9.e30.x",
        "123e4567-e89b-12d3-a456-426614174000",
        "a1b2c3d4e5f6a7b8c9d0",
    ],
)
def test_tokens_are_known_by_their_looks(value: str) -> None:
    assert looks_secret(value)


@pytest.mark.parametrize("value", ["server-filesystem", "mcp-server-2024-11-05", "hello world", "--config", "index.js"])
def test_usual_words_do_not_look_like_tokens(value: str) -> None:
    assert not looks_secret(value)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ANYTHING", "unusual-value", True),
        ("PIN", "1234", True),
        ("PORT", "8080", False),
        ("BASE_URL", "https://api.example.com/v1", False),
        ("BASE_URL", "https://u:p@api.example.com/v1", True),
        ("DATA_DIR", "/srv/data", False),
        ("FEATURE", "true", False),
    ],
)
def test_environment_values_are_secret_unless_they_are_plain(name: str, value: str, secret: bool) -> None:
    assert env_is_secret(name, value) is secret


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h/mcp", "https://h/mcp"),
        ("https://token@h/mcp", "https://***@h/mcp"),
        ("https://u:p@h:1/a?b=c#d", "https://u:***@h:1/a?b=c#d"),
        ("https://h/npm/@scope/name", "https://h/npm/@scope/name"),
        ("postgresql://u:p/w#x@h/d", "postgresql://u:***@h/d"),
        ("https://h/cb#access_token=abc&x=1", "https://h/cb#access_token=***&x=1"),
        ("not a url", "not a url"),
        ("", ""),
    ],
)
def test_urls_lose_their_credentials_only(url: str, shown: str) -> None:
    assert mask_url(url) == shown


@pytest.mark.parametrize(
    "args",
    [
        ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/project_2024_01_02_files"],
        ["--token", "--verbose"],
        ["--max-tokens", "4000", "--host=127.0.0.1", "name=value", ""],
        ["mcp-remote", "https://mcp.example.com/sse"],
    ],
)
def test_usual_arguments_are_shown_whole(args: list[str]) -> None:
    assert [joined(pieces) for pieces in arg_pieces(args)] == args


def test_a_document_that_comes_back_as_it_was_shown_keeps_its_secrets(config: Config) -> None:
    assert unmask(masked(config), plain(config), masked(config)) == plain(config)


def test_an_edit_beside_a_hidden_value_is_kept_and_the_secret_too() -> None:
    server = Server(name="a", command="x", env={"T": "secret-value", "U": "other-value"}, args=("--token", "abc"))
    edited = masked(server)
    edited["env"]["U"] = "new"
    edited["env"]["V"] = "***"
    edited["args"].append("--more")
    back = unmask(edited, plain(server), masked(server))
    assert back["env"] == {"T": "secret-value", "U": "new", "V": "***"}
    assert back["args"] == ["--token", "abc", "--more"]


def test_an_oauth_secret_is_shown_hidden_even_when_short() -> None:
    shown = masked(Server(name="a", url="http://h", oauth=OAuth(client_secret="abc")))
    assert shown["oauth"]["client_secret"] == "***"
