"""A long text is cut where it still reads, and its pieces together are the text."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpproxy.outputs.cut import Kind, cut, kind_of, page

RECORDS = [{"id": number, "name": 'a, "b" ] c', "tags": [1, 2]} for number in range(500)]


def pages(text: str, limit: int, kind: Kind | None = None) -> list[str]:
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        piece, offset = page(text, offset, limit, kind)
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize("limit", [0, 5, 6])
def test_a_text_within_the_limit_is_not_cut(limit: int) -> None:
    assert cut("hello", limit) is None


def test_an_array_is_cut_between_its_elements() -> None:
    text = json.dumps(RECORDS)
    first = cut(text, 1_000)
    assert first is not None
    assert (first.kind, first.total, first.offset) == ("json_array", len(text), len(first.head))
    assert len(json.loads(first.head.rstrip(", ") + "]")) > 10
    rest, _ = page(text, first.offset, 1_000, first.kind)
    assert json.loads("[" + rest.rstrip(", ") + "]")[0] in RECORDS


def test_an_object_is_cut_between_the_records_of_its_long_member() -> None:
    text = json.dumps({"meta": {"page": 1}, "items": RECORDS, "total": 500}, indent=2)
    for piece in pages(text, 2_000)[1:-1]:
        assert json.loads("[" + piece.strip().rstrip(",") + "]")[0] in RECORDS


def test_the_outermost_boundary_in_reach_is_taken() -> None:
    text = json.dumps({"a": "x" * 60, "b": [1, 2, 3, 4, 5], "c": "y" * 60})
    first = cut(text, 100)
    assert first is not None
    assert first.head.endswith("[1, 2, 3, 4, 5],")


def test_json_lines_are_cut_between_lines() -> None:
    text = "\n".join(json.dumps(record) for record in RECORDS)
    first = cut(text, 1_000)
    assert first is not None
    assert first.kind == "json_lines"
    assert [json.loads(line) for line in first.head.splitlines()] == RECORDS[: first.head.count("\n")]


def test_text_is_cut_at_a_line_else_at_a_word_else_anywhere() -> None:
    assert pages("one two\nthree four\nfive", 15)[0] == "one two\n"
    assert pages("one two three four five", 15)[0] == "one two three "
    assert pages("x" * 40, 15) == ["x" * 15, "x" * 15, "x" * 10]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[1]", "json_array"),
        (' {"a": 1}', "json_object"),
        ('{"a":1}\n{"a":2}', "json_lines"),
        ('{\n"a": 1\n}', "json_object"),
        ("[note] hello, world", "text"),
        ('{"a": 1', "text"),
        ('"quoted"', "text"),
        ("", "text"),
        ("[" * 50_000, "text"),
        ('["\ud800"]', "json_array"),
    ],
)
def test_the_kind_of_a_text_is_recognised(text: str, kind: Kind) -> None:
    assert kind_of(text) == kind


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.text(alphabet='[]{},":\\ \n\ud83dxé😀', max_size=200)
    | st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=3), max_size=8).map(json.dumps),
    st.integers(1, 40),
    st.sampled_from([None, "json_array", "json_object", "json_lines", "text"]),
)
def test_the_pieces_are_the_text_and_none_is_too_long(text: str, limit: int, kind: Kind | None) -> None:
    pieces = pages(text, limit, kind)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= limit for piece in pieces) or text == ""


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=50), st.integers(-100, 100), st.integers(-10, 60))
def test_any_offset_and_limit_are_answered(text: str, offset: int, limit: int) -> None:
    piece, following = page(text, offset, limit)
    assert piece in text
    assert following is None or max(offset, 0) < following < len(text)
