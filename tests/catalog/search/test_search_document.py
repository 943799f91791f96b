"""What is searched of one tool?"""

from typing import Any

from mcpproxy.catalog.search.document import MAX_PARAMETERS, MAX_TEXT, Document, fields_of, parameters_of


def document(schema: Any, **more: Any) -> Document:
    return Document(id="s:t", server="s", name="t", input_schema=schema, **more)


def test_nested_parameters_and_their_texts_are_read() -> None:
    schema = {
        "properties": {
            "issue": {
                "description": "what to open",
                "properties": {"labels": {"items": {"properties": {"colour": {"enum": ["red", "green"]}}}}},
            }
        }
    }
    assert list(parameters_of(schema)) == [("issue", "what to open"), ("labels", ""), ("colour", "red green")]


def test_definitions_behind_a_local_reference_are_read() -> None:
    schema = {
        "$defs": {"Point": {"properties": {"latitude": {"type": "number"}}}},
        "properties": {"where": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}},
    }
    assert [name for name, _ in parameters_of(schema)] == ["where", "latitude"]


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"properties": {"child": {"$ref": "#"}, "again": {"$ref": "#/properties/child"}}}
    assert {name for name, _ in parameters_of(schema)} == {"child", "again"}


def test_a_schema_that_doubles_itself_stays_bounded() -> None:
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)}
    schema = {"$defs": defs, "properties": {"p": {"$ref": "#/$defs/d0"}}}
    assert list(parameters_of(schema)) == [("p", "")]


def test_a_schema_with_very_many_parameters_is_read_up_to_the_bound() -> None:
    schema = {"properties": {f"p{n}": {"description": "x" * 1000} for n in range(50_000)}}
    assert len(list(parameters_of(schema))) == MAX_PARAMETERS
    assert len(fields_of(document(schema)).parameter_texts) <= MAX_TEXT + MAX_PARAMETERS


def test_a_schema_of_the_wrong_shape_has_no_parameters() -> None:
    strange: list[Any] = [None, [], "x", {"properties": []}, {"properties": {"a": 5}, "items": 3, "anyOf": {}}]
    for schema in strange:
        assert all(text == "" for _, text in parameters_of(schema))


def test_a_remote_reference_is_never_followed() -> None:
    assert list(parameters_of({"$ref": "https://example.com/schema.json"})) == []
