"""Arguments reach a tool as the user meant them."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpproxy.cli.call.arguments import given_json, merged, typed
from mcpproxy.cli.errors import Failure

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "filter": {"type": "object"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["boolean", "string"]},
        "level": {"enum": ["low", "high", 3]},
        "size": {"$ref": "#/$defs/size"},
        "free": {},
    },
    "$defs": {"size": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("pairs", "sent"),
    [
        (["text=12"], '{"text":"12"}'),
        (["text=true"], '{"text":"true"}'),
        (["text=a=b"], '{"text":"a=b"}'),
        (["text="], '{"text":""}'),
        (["count=12"], '{"count":12}'),
        (["count=123456789012345678901234567890"], '{"count":123456789012345678901234567890}'),
        (["ratio=0.10"], '{"ratio":0.10}'),
        (["ratio=1E5"], '{"ratio":1E5}'),
        (["deep=true", "text=x"], '{"deep":true,"text":"x"}'),
        (["tags=a"], '{"tags":["a"]}'),
        (["tags=a", "tags=b"], '{"tags":["a","b"]}'),
        (['tags=["a", "b"]'], '{"tags":["a", "b"]}'),
        (["numbers=1", "numbers=2"], '{"numbers":[1,2]}'),
        (['filter={"a": 1.0}'], '{"filter":{"a": 1.0}}'),
        (["maybe=null"], '{"maybe":null}'),
        (["maybe=4"], '{"maybe":4}'),
        (["either=yes"], '{"either":"yes"}'),
        (["either=false"], '{"either":false}'),
        (["level=low"], '{"level":"low"}'),
        (["level=3"], '{"level":3}'),
        (["size=7"], '{"size":7}'),
        (["free=1.50"], '{"free":1.50}'),
        (["free=some words"], '{"free":"some words"}'),
        (["unknown=[1]"], '{"unknown":[1]}'),
    ],
)
def test_pairs_take_the_type_that_the_schema_wants(pairs: list[str], sent: str) -> None:
    assert merged(None, pairs, SCHEMA).decode() == sent


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (["count=many"], "count: 'many' is not a whole number"),
        (["count=1.5"], "not a whole number"),
        (["deep=yes"], "deep: 'yes' is not true or false"),
        (["filter=x"], "not a JSON object"),
        (["count=1", "count=2"], "count is given 2 times"),
        (["maybe=x"], "not null or a whole number"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_words(pairs: list[str], said: str) -> None:
    with pytest.raises(Failure, match=said):
        typed(pairs, SCHEMA)


def test_json_alone_is_sent_byte_for_byte() -> None:
    text = '{"b": 0.10, "a": 1e400,  "a": 2}'
    assert merged(given_json(("--args", text)), [], SCHEMA).decode() == text


def test_pairs_are_laid_over_json() -> None:
    data = given_json(("--args", '{"text": "x", "ratio": 0.10}'))
    assert json.loads(merged(data, ["text=y", "count=1"], SCHEMA)) == {"text": "y", "ratio": 0.1, "count": 1}


def test_a_file_is_read_behind_an_at_sign(tmp_path: Path) -> None:
    path = tmp_path / "arguments.json"
    path.write_text('{"a": 1}\n')
    assert given_json(("--args", f"@{path}")) == b'{"a": 1}'


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([("--args", "{"), ("--json_args", None)], "--args is not valid JSON"),
        ([("--args", "[1]"), ("--json_args", None)], "must be a JSON object"),
        ([("--args", "{}"), ("--json_args", "{}")], "--args or --json_args, not both"),
        ([("--args", "@/nowhere/at/all"), ("--json_args", None)], "/nowhere/at/all cannot be read"),
    ],
)
def test_what_is_no_json_object_is_refused_before_anything_is_asked(
    options: list[tuple[str, str | None]], said: str
) -> None:
    with pytest.raises(Failure, match=said) as caught:
        given_json(*options)
    assert caught.value.exit_code == 2


def test_a_schema_that_makes_no_sense_is_no_obstacle() -> None:
    loops = {"properties": {"a": {"$ref": "#/properties/a"}, "b": True, "c": {"$ref": "#/nowhere"}}}
    assert merged(None, ["a=1", "b=2", "c=x"], loops).decode() == '{"a":1,"b":2,"c":"x"}'
