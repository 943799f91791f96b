"""Forms from schemas, and arguments from forms."""

import json
from typing import Any

import pytest

from mcpproxy.web.callform import PREFIX, Unreadable, arguments_in, arguments_of, fields_of
from mcpproxy.web.forms import Form

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"$ref": "#/$defs/Note"},
        "title": {"type": "string", "maxLength": 20},
        "body": {"type": "string"},
        "ratio": {"type": "number"},
        "limit": {"type": "integer"},
        "all": {"type": "boolean"},
        "state": {"enum": ["open", 2, None]},
        "labels": {"type": "array", "items": {"type": "string"}},
        "points": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["title"],
    "$defs": {"Note": {"type": "object", "description": "A note"}},
}


def filled(**values: str) -> Form:
    return Form([(PREFIX + name, value) for name, value in values.items()])


def arguments(**values: str) -> str:
    fields = fields_of(SCHEMA)
    assert fields is not None
    return arguments_of(fields, filled(**values)).decode()


def test_each_member_gets_the_field_that_fits_it_and_required_ones_come_first() -> None:
    fields = fields_of(SCHEMA)
    assert fields is not None
    assert fields[0].name == "title"
    assert {field.name: field.kind for field in fields} == {
        "title": "text",
        "note": "json",
        "body": "long",
        "ratio": "number",
        "limit": "whole",
        "all": "flag",
        "state": "choice",
        "labels": "lines",
        "points": "json",
    }
    assert next(field for field in fields if field.name == "note").description == "A note"


def test_what_is_left_empty_is_left_out() -> None:
    assert arguments() == "{}"
    assert json.loads(arguments(title="x", body="  ", limit="")) == {"title": "x"}


def test_numbers_go_on_as_they_were_typed() -> None:
    assert arguments(ratio="0.10", limit="12345678901234567890123") == (
        '{"ratio": 0.10, "limit": 12345678901234567890123}'
    )


def test_every_kind_becomes_the_value_it_stands_for() -> None:
    given = {"title": ' "a"\n', "all": "false", "state": "2", "labels": "a\n\n b ", "points": "[1, 2.50]"}
    assert json.loads(arguments(**given, note='{"x": null}')) == {
        "title": ' "a"\n',
        "all": False,
        "state": 2,
        "labels": ["a", "b"],
        "points": [1, 2.5],
        "note": {"x": None},
    }


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("ratio", "1,5", "number"),
        ("ratio", "NaN", "number"),
        ("limit", "1.5", "whole number"),
        ("limit", "0x10", "whole number"),
        ("all", "yes", "true or false"),
        ("state", '"closed"', "one of the list"),
        ("points", "[1,", "not JSON"),
        ("note", 'a, "injected": 1', "not JSON"),
        ("points", "[" * 100_000, "nested too deep"),
    ],
)
def test_what_cannot_be_meant_is_said_at_its_field(name: str, text: str, word: str) -> None:
    with pytest.raises(Unreadable) as refused:
        arguments(**{name: text})
    assert list(refused.value.problems) == [name]
    assert word in refused.value.problems[name]


def test_arguments_typed_as_json_stay_as_they_are() -> None:
    assert arguments_in('{"a": 1.10}') == b'{"a": 1.10}'
    assert arguments_in("") == b"{}"
    for text in ("[1]", "{", '"x"', "[" * 100_000):
        with pytest.raises(Unreadable):
            arguments_in(text)


@pytest.mark.parametrize("schema", [{}, {"type": "object"}])
def test_a_tool_without_members_has_an_empty_form(schema: Any) -> None:
    assert fields_of(schema) == []


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"oneOf": [{"type": "object"}]},
        {"properties": 3},
        {"type": "string"},
        {"type": "object", "properties": {f"p{n}": {} for n in range(100)}},
    ],
)
def test_a_schema_that_is_too_odd_for_a_form_leaves_json(schema: Any) -> None:
    assert fields_of(schema) in (None, [])
    if schema is not None and schema != []:
        assert fields_of(schema) is None


def test_a_hostile_member_gets_a_field_that_can_be_filled() -> None:
    name = 'x" onfocus="alert(1)'
    fields = fields_of({"properties": {name: {"enum": ["<script>"]}, "y": True, "z": {"type": ["string", "null"]}}})
    assert fields is not None
    assert {field.name: field.kind for field in fields} == {name: "choice", "y": "json", "z": "json"}
    assert json.loads(arguments_of(fields, filled(**{name: '"<script>"'}))) == {name: "<script>"}
