"""The settings form: every key is on it, and only what was changed is sent."""

from typing import Any

import pytest
from msgspec import inspect

from mcpproxy.config.load import parse
from mcpproxy.config.models import Config
from mcpproxy.web.options import ELSEWHERE, GROUPS, _kinds, changed, options

KEYS = {key for members in GROUPS.values() for key in members}


def test_every_key_of_the_configuration_is_on_the_form_or_known_to_be_elsewhere() -> None:
    known = {key for key, _ in _kinds(inspect.type_info(Config), "")}
    assert known - KEYS == ELSEWHERE
    assert known >= KEYS


def texts(config: Config) -> dict[str, str]:
    return {option.key: option.text for members in options(config).values() for option in members}


def test_a_form_that_comes_back_unchanged_changes_nothing() -> None:
    config, _ = parse({"trusted_hosts": ["a.example", "b.example"], "require_mcp_auth": False, "tools_limit": 7})
    assert changed(texts(config), config) == {}
    assert changed({}, config) == {}


@pytest.mark.parametrize(
    ("key", "text", "patch"),
    [
        ("tools_limit", "20", {"tools_limit": 20}),
        ("tools_limit", "", {"tools_limit": None}),
        ("tools_limit", "many", {"tools_limit": "many"}),
        ("require_mcp_auth", "true", {"require_mcp_auth": True}),
        ("output_validation.mode", "strict", {"output_validation": {"mode": "strict"}}),
        ("call_tool_timeout", "90s", {"call_tool_timeout": "90s"}),
        ("trusted_hosts", " a.example \r\n b.example", {"trusted_hosts": ["a.example", "b.example"]}),
        ("otel_endpoint", "http://127.0.0.1:4318", {"otel_endpoint": "http://127.0.0.1:4318"}),
    ],
)
def test_a_change_is_sent_as_the_value_it_means(key: str, text: str, patch: dict[str, Any]) -> None:
    assert changed(texts(Config()) | {key: text}, Config()) == patch


def test_only_the_keys_of_the_contract_need_a_restart() -> None:
    restart = {option.key for members in options(Config()).values() for option in members if option.restart}
    assert restart == {"listen", "storage"}


def test_secrets_do_not_stand_on_the_form() -> None:
    config, _ = parse({"storage": "postgresql://me:hunter22secret@db/x", "api_key": "k" * 64})
    assert "hunter22secret" not in str(texts(config))
    assert changed(texts(config), config) == {}
