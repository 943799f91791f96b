"""Schemas as people read them, hostile ones included."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.web.callform import fields_of
from mcpproxy.web.schema import MAX_ROWS, decoded, parameters, type_of


def test_members_are_listed_with_their_parts_below_them() -> None:
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "One line", "minLength": 1, "maxLength": 120},
            "owner": {"$ref": "#/$defs/User"},
            "tags": {"type": "array", "items": {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}}},
        },
        "required": ["title"],
        "$defs": {"User": {"type": "object", "properties": {"id": {"type": ["integer", "null"], "default": 7}}}},
    }
    rows = [(row.depth, row.name, row.type, row.required) for row in parameters(schema)]
    assert rows == [
        (0, "title", "text", True),
        (0, "owner", "object", False),
        (1, "id", "whole number or null", False),
        (0, "tags", "list of object", False),
        (1, "name", "choice", False),
    ]
    title, _, owner_id, _, name = parameters(schema)
    assert (title.description, title.limits) == ("One line", ("1 to 120 characters",))
    assert owner_id.default == "7"
    assert name.choices == ("a", "b")


def test_alternatives_are_named_once_each() -> None:
    schema = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "string"}, {"type": "null"}]}
    assert type_of(schema, schema) == "text or number or null"


def test_a_schema_that_contains_itself_ends() -> None:
    node: dict[str, Any] = {"properties": {"next": {"$ref": "#"}, "other": {"$ref": "#/properties/other"}}}
    assert [row.name for row in parameters(node)][:3] == ["next", "next", "other"]
    assert fields_of(node) is not None


def test_a_schema_that_doubles_itself_costs_little() -> None:
    definitions = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8, "properties": {"x": {"$ref": f"#/$defs/d{n + 1}"}}}
        for n in range(40)
    }
    schema = {"properties": {f"p{n}": {"$ref": "#/$defs/d0"} for n in range(500)}, "$defs": definitions}
    assert len(parameters(schema)) == MAX_ROWS  # without a bound it would never end


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "$ref", "enum", "required", "anyOf", "default", "x"]),
            inner | st.sampled_from(["#", "#/properties/x", "object", "array", "string"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_no_schema_is_odd_enough_to_fail(schema: Any) -> None:
    parameters(schema)
    fields_of(schema)


def test_a_schema_that_cannot_be_read_is_nothing() -> None:
    assert decoded(b"{") is None
    assert decoded(None) is None
    assert parameters(None) == []
