"""Does any change of a definition change its version, and nothing else?"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.trust_desk import DELETE, Desk, listing

from mcpproxy.catalog.pins import canonical, version_hash
from mcpproxy.storage.engine import open_storage

Path_ = tuple[str | int, ...]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, at: Path_ = ()) -> list[Path_]:
    """Every place in a definition."""
    found = [at]
    if isinstance(value, dict):
        found += [path for key, inner in value.items() for path in paths(inner, (*at, key))]
    elif isinstance(value, list):
        found += [path for place, inner in enumerate(value) for path in paths(inner, (*at, place))]
    return found


def mutated(value: Any, path: Path_, change: Any) -> Any:
    """A copy in which the value at one place went through `change`; REMOVED takes it away."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for step in path[:-1]:
        holder = holder[step]
    new = change(holder[path[-1]])
    if new is REMOVED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    return copy


REMOVED = object()
PLACES = [path for path in paths(DELETE) if path and path != ("name",)]


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def version(definition: bytes) -> str:
    return version_hash("github", "command", definition)


@given(st.sampled_from(PLACES), JSON)
def test_any_other_value_anywhere_is_another_version(path: Path_, value: Any) -> None:
    changed = mutated(DELETE, path, lambda _: value)
    assert (version(text(changed)) == version(text(DELETE))) == (text(changed) == text(DELETE))


@given(st.sampled_from([path for path in PLACES if isinstance(path[-1], str)]))
def test_a_part_that_is_taken_away_is_another_version(path: Path_) -> None:
    assert version(text(mutated(DELETE, path, lambda _: REMOVED))) != version(text(DELETE))


@given(st.sampled_from([(), *PLACES]), st.text(), JSON)
def test_a_key_that_nobody_knows_is_another_version(path: Path_, key: str, value: Any) -> None:
    holder: Any = DELETE
    for step in path:
        holder = holder[step]
    if not isinstance(holder, dict) or key in holder:
        return
    changed = mutated({"all": DELETE}, ("all", *path), lambda inner: {**inner, key: value})["all"]
    assert version(text(changed)) != version(text(DELETE))


FIELDS = [key for key in DELETE if key != "name"]
OTHER = {"title": "Other", "description": "Other.", "icons": []}


@pytest.mark.parametrize(
    "after",
    [{key: value for key, value in DELETE.items() if key != field} for field in FIELDS]
    + [{**DELETE, field: OTHER.get(field, {"type": "object"})} for field in [*FIELDS, "another", "_Meta"]],
    ids=[f"no {field}" for field in FIELDS] + [f"other {field}" for field in [*FIELDS, "another", "_Meta"]],
)
def test_a_change_of_any_field_is_held(after: dict[str, Any], tmp_path: Path) -> None:
    """One list, then the same with one field other or gone: the tool is away until somebody approves it."""
    storage = open_storage("sqlite", tmp_path)

    async def main() -> None:
        desk = Desk(storage)
        await desk.catalog.put(listing(DELETE))
        assert desk.visible == ["github:delete_repo"]
        await desk.catalog.put(listing(after))
        assert desk.visible == []
        assert desk.catalog.snapshot.find("github:delete_repo") is None
        assert desk.waiting == {"github:delete_repo": "changed"}

    asyncio.run(main())
    storage.close()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(PLACES), JSON)
def test_whatever_is_changed_wherever_is_held(path: Path_, value: Any) -> None:
    from tempfile import TemporaryDirectory

    from mcpproxy.catalog.tool import BadDefinition, parse_tool

    after = mutated(DELETE, path, lambda _: value)
    if text(after) == text(DELETE):
        return
    try:
        parse_tool("github", text(after))
    except BadDefinition:
        return  # such a tool does not exist for us at all

    async def main(folder: str) -> None:
        storage = open_storage("sqlite", Path(folder))
        desk = Desk(storage)
        await desk.catalog.put(listing(DELETE))
        await desk.catalog.put(listing(after))
        assert desk.visible == [] and desk.waiting == {"github:delete_repo": "changed"}
        storage.close()

    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))


def test_spelling_that_means_the_same_is_the_same_version() -> None:
    plain = b'{"name":"a","description":"x","inputSchema":{"type":"object","properties":{"p":{}}}}'
    spaced = b'{ "inputSchema" : {"properties":{"p":{ }}, "type":"object"},\n"description":"\\u0078", "name":"a" }'
    assert canonical(plain) == canonical(spaced)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1}', b'{"a":1.0}'),
        (b'{"a":1e400}', b'{"a":2e400}'),
        (b'{"a":100000000000000000001}', b'{"a":100000000000000000002}'),
        (b'{"a":1}', b'{"a":"1"}'),
        (b'{"a":1}', b'{"a":{"n":"1"}}'),
        (b'{"a":{}}', b'{"a":{"o":[]}}'),
        (b'{"a":[]}', b'{"a":{}}'),
        (b'{"a":null}', b"{}"),
        (b'{"a":[1,2]}', b'{"a":[2,1]}'),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"a":1,"a":2}', b'{"a":2,"a":1}'),
        (b'{"a":"\xc3\xa9"}', b'{"a":"e\xcc\x81"}'),
        (b'{"a":"x"}', b'{"a":"x\\u200b"}'),
    ],
)
def test_what_a_reader_could_take_for_something_else_is_another_version(one: bytes, other: bytes) -> None:
    assert canonical(one) != canonical(other)


def test_a_version_belongs_to_the_name_and_the_command_of_its_server() -> None:
    definition = text(DELETE)
    versions = {
        version_hash("a", "command", definition),
        version_hash("b", "command", definition),
        version_hash("a", "other command", definition),
        version_hash("ac", "ommand", definition),
    }
    assert len(versions) == 4


@pytest.mark.parametrize("depth", [99, 101, 900])
def test_a_definition_of_any_depth_has_one_version_wherever_it_is_asked_for(depth: int) -> None:
    definition = b'{"name":"a","inputSchema":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"

    def deep_down(levels: int) -> bytes:
        return canonical(definition) if levels == 0 else deep_down(levels - 1)

    assert canonical(definition) == deep_down(500)
    assert canonical(definition) != canonical(definition.replace(b"1", b"2"))
