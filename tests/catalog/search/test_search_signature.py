"""How is a tool called, in one line?"""

from typing import Any

import pytest

from mcpproxy.catalog.search.signature import MAX_SENTENCE, first_sentence, signature_of


def properties(given: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": given, "required": required or []}


def test_required_parameters_come_first_and_optional_ones_are_marked() -> None:
    text = {"type": "string"}
    given = {"labels": {"type": "array", "items": text}, "repo": text, "title": text}
    schema = properties(given, ["repo", "title"])
    assert signature_of(schema) == "(repo: str, title: str, labels?: [str])"


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "num"),
        ({"type": ["string", "null"]}, "str|null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str|null"),
        ({"enum": ["open", "closed"]}, '"open"|"closed"'),
        ({"enum": list(range(9))}, "0|1|2|3|4|5|… 3 more"),
        ({"const": "fixed"}, '"fixed"'),
        ({"type": "array"}, "[any]"),
        ({"type": "object"}, "object"),
        ({"type": "object", "properties": {"x": {"type": "number"}}}, "{x?: num}"),
        ({"$ref": "#/$defs/P"}, "{lat?: num}"),
        ({"allOf": [{"$ref": "#/$defs/P"}]}, "{lat?: num}"),
        ({}, "any"),
        (True, "any"),
        ({"type": 5}, "any"),
    ],
)
def test_types_are_short_and_readable(schema: Any, shown: str) -> None:
    whole = {"$defs": {"P": {"properties": {"lat": {"type": "number"}}}}, "properties": {"p": schema}}
    assert signature_of(whole) == f"(p?: {shown})"


def test_what_is_not_shown_is_counted() -> None:
    schema = properties({f"p{n}": {"type": "string"} for n in range(30)})
    assert signature_of(schema).endswith("p23?: str, … 6 more)")


def test_a_name_that_is_no_identifier_is_quoted() -> None:
    assert signature_of(properties({"a b\n": {"type": "string"}})) == '("a b\\n"?: str)'


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"properties": {"child": {"$ref": "#"}}}
    assert signature_of(schema).startswith("(child?:")


@pytest.mark.parametrize("schema", [None, [], {"properties": None}, {"properties": {}}, {"required": 5}])
def test_a_tool_without_parameters_has_empty_brackets(schema: Any) -> None:
    assert signature_of(schema) == "()"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Opens an issue. Needs a token.", "Opens an issue."),
        ("Reads e.g. a file. More.", "Reads e.g. a file."),
        ("Version 2.0 of the tool. More.", "Version 2.0 of the tool."),
        ("One line\nthat goes on\n\nArgs: x", "One line that goes on"),
        ("搜索论文。更多。", "搜索论文。"),
        ("", ""),
    ],
)
def test_the_first_sentence_stands_on_one_line(text: str, first: str) -> None:
    assert first_sentence(text) == first


def test_a_first_sentence_without_end_is_cut_and_marked() -> None:
    cut = first_sentence("word " * 500)
    assert len(cut) <= MAX_SENTENCE and cut.endswith("word…")
