"""Whatever stands in the file: it loads, or every problem is named; and writing keeps what it does not know."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect, structs

from mcpproxy.config.dialects import DIALECTS
from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.mask import Masker, masked, secrets_of, unmask
from mcpproxy.config.models import Config, Duration, Server, plain
from mcpproxy.config.sniff import arg_pieces, env_pieces, header_pieces, line_pieces, url_pieces
from mcpproxy.config.write import remove_server, set_server, update


def keys(kind: type) -> list[str]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    dialect = DIALECTS[kind]
    return [field.encode_name for field in info.fields] + [*dialect.same, *dialect.opposite, *dialect.notes]


text = st.text(max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | text
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=12
)
entries = st.dictionaries(st.sampled_from(keys(Server)) | text, json_values, max_size=6)
documents = st.dictionaries(
    st.sampled_from(keys(Config)) | text,
    json_values | st.lists(entries, max_size=3) | st.dictionaries(text, entries, max_size=3),
    max_size=6,
)

names = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
unknown = st.dictionaries(
    st.from_regex(r"x_[a-z]{1,6}", fullmatch=True),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    ),
    max_size=4,
)
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
servers = st.builds(
    Server,
    name=names,
    command=names,
    args=st.lists(words, max_size=3).map(tuple),
    env=st.dictionaries(names, words, max_size=3),
    enabled=st.booleans(),
    trust=st.sampled_from(["first_use", "manual", "scan"]),
    call_tool_timeout=st.none() | st.integers(1, 10_000).map(Duration),
)


@given(documents)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_document_loads_or_is_a_config_error(document: dict[str, Any]) -> None:
    try:
        config, warnings = parse(document)
    except ConfigError as error:
        assert error.problems
        assert all(str(problem).isprintable() for problem in error.problems)
    else:
        assert config.listen == "" or ":" in config.listen
        assert all(warning.isprintable() for warning in warnings)
        json.dumps(masked(config))


@given(st.binary(max_size=200) | st.text('{}[]":,\\/* tru1e\n', max_size=60).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_load_or_are_a_config_error(data: bytes) -> None:
    try:
        parse(data)
    except ConfigError as error:
        assert error.problems


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, ordered(item)) for key, item in value.items()]
    return [ordered(item) for item in value] if isinstance(value, list) else (type(value), value)


@given(unknown, unknown, unknown, servers, st.booleans())
@settings(max_examples=100, deadline=None)
def test_writing_keeps_unknown_keys_and_their_order(
    before: dict[str, Any], within: dict[str, Any], after: dict[str, Any], server: Server, keyed: bool
) -> None:
    after = {key: item for key, item in after.items() if key not in before}
    entry = {**within, "command": "first"}
    block: Any = {server.name: entry} if keyed else [{"name": server.name, **entry}]
    document = {**before, "mcpServers": block, **after}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "c.json"
        path.write_text(json.dumps(document))
        loaded = update(path, lambda content: set_server(content, server), {})
        written = json.loads(path.read_text())
    assert loaded.config.servers == (server,)
    assert parse(written)[0].servers == (server,)
    rest = {key: item for key, item in written.items() if key != "mcpServers"}
    assert ordered(rest) == ordered(before | after)
    found = written["mcpServers"][server.name] if keyed else written["mcpServers"][0]
    assert ordered({key: item for key, item in found.items() if key.startswith("x_")}) == ordered(within)


@given(servers, servers)
@settings(max_examples=100, deadline=None)
def test_any_server_becomes_any_other_and_goes_again(one: Server, other: Server) -> None:
    document: dict[str, Any] = {}
    set_server(document, one)
    set_server(document, structs.replace(other, name=one.name))
    (found,) = parse(document)[0].servers
    assert plain(found) | {"name": ""} == plain(other) | {"name": ""}
    assert remove_server(document, one.name)
    assert parse(document)[0].servers == ()


@given(st.lists(words, max_size=5), names)
@settings(max_examples=200, deadline=None)
def test_pieces_are_the_text_again(args: list[str], name: str) -> None:
    cut = [*arg_pieces(args)]
    assert ["".join(part for part, _ in pieces) for pieces in cut] == args
    for arg in args:
        for pieces in (url_pieces(arg), env_pieces(name, arg), header_pieces(name, arg), line_pieces(arg)):
            assert "".join(part for part, _ in pieces) == arg


@given(st.lists(servers, max_size=3, unique_by=lambda server: server.name), words)
@settings(max_examples=100, deadline=None)
def test_what_is_shown_gives_the_same_back(listed: list[Server], line: str) -> None:
    config = Config(servers=tuple(listed), api_key="canary-key")
    assert unmask(masked(config), plain(config), masked(config)) == plain(config)
    masker = Masker()
    masker.learn("config", secrets_of(config))
    assert "canary-key" not in masker.mask(line + "canary-key" + line)


@given(st.floats(1e-6, 1e8))
def test_a_duration_survives_being_written(seconds: float) -> None:
    read = Duration.read(Duration(seconds).text)
    assert read is not None and abs(read - seconds) <= max(1e-9, seconds * 1e-9)
