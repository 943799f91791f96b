"""Server forms and entries, there and back."""

from typing import Any

import pytest

from mcpproxy.config.load import parse
from mcpproxy.config.mask import masked
from mcpproxy.config.models import Server, plain
from mcpproxy.config.write import merge_settings
from mcpproxy.web.entry import EMPTY, BadField, changes, entry_of, field_of, texts_of, without_gaps
from mcpproxy.web.forms import Form

ENTRIES: list[dict[str, Any]] = [
    {"name": "a", "command": "npx", "args": ["-y", "two words", "it's", "$HOME"], "env": {"A": "b c", "D": "e=f"}},
    {"name": "a", "command": "x", "working_dir": "/srv", "enabled_tools": ["one"], "disabled_tools": ["two", "three"]},
    {"name": "a", "url": "https://e.com/mcp", "headers": {"X-A": "b: c"}, "protocol": "sse", "trust": "manual"},
    {"name": "a", "url": "https://e.com/mcp", "call_tool_timeout": "90s", "oauth": {"client_id": "i", "scopes": ["s"]}},
]


def server_of(entry: dict[str, Any]) -> Server:
    return parse({"mcpServers": [entry]})[0].servers[0]


def form_of(texts: dict[str, str], **more: str) -> Form:
    return Form(list((texts | more).items()))


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_survives_the_form(entry: dict[str, Any]) -> None:
    server = server_of(entry)
    texts = texts_of(plain(server))
    assert server_of(without_gaps(entry_of(form_of(texts))) | {"name": "a"}) == server


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_form_that_comes_back_unchanged_changes_nothing(entry: dict[str, Any]) -> None:
    server = server_of(entry)
    after = plain(server)
    merge_settings(after, changes(entry_of(form_of(texts_of(plain(server)))), plain(server)))
    assert server_of(after) == server


def test_what_is_taken_out_of_a_form_is_taken_out_of_the_entry() -> None:
    server = server_of(ENTRIES[0])
    after = plain(server)
    merge_settings(after, changes(entry_of(form_of(texts_of(plain(server)), env="A=b c")), plain(server)))
    assert server_of(after).env == {"A": "b c"}
    merge_settings(after, changes(entry_of(form_of(texts_of(plain(server_of(after))), env="")), after))
    assert server_of(after).env == {}


def test_keys_of_oauth_that_the_form_does_not_know_stay() -> None:
    server = server_of({"name": "a", "url": "https://e.com", "oauth": {"redirect_uri": "http://127.0.0.1:1/x"}})
    after = plain(server)
    merge_settings(after, changes(entry_of(form_of(texts_of(plain(server)))), plain(server)))
    assert server_of(after) == server


def test_a_command_that_becomes_an_address_leaves_nothing_behind() -> None:
    server = server_of(ENTRIES[0])
    after = plain(server)
    form = form_of(texts_of(masked(server)), kind="url", url="https://e.com/mcp")
    merge_settings(after, changes(entry_of(form), masked(server)))
    assert server_of(after) == Server(name="a", url="https://e.com/mcp")


@pytest.mark.parametrize(
    ("field", "text", "word"),
    [
        ("command_line", "", "give the command"),
        ("command_line", "npx 'x", "no closing quotation"),
        ("env", "A=1\nB", "line 2: write NAME=value"),
        ("env", "=x", "line 1"),
    ],
)
def test_a_field_that_cannot_be_read_is_named(field: str, text: str, word: str) -> None:
    with pytest.raises(BadField, match=word) as refused:
        entry_of(form_of(EMPTY | {"command_line": "npx"}, **{field: text}))
    assert refused.value.field == field


def test_problems_of_an_entry_find_their_field() -> None:
    assert [field_of(path) for path in ("args[0]", 'env["A"]', "oauth.client_id", "body", "url")] == [
        "command_line",
        "env",
        "oauth_client_id",
        "name",
        "url",
    ]
