"""A result with long texts in it is seen as one that is gone through byte by byte."""

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpproxy.calls import longtexts, result
from mcpproxy.calls.longtexts import _MOST_LEFT, _PER_QUOTE, LARGE, bare_of

# Long and short, plain and not, with all that a careless search for quotes trips over.
texts = st.text(alphabet='ab"\\é\U0001f600\n{}[]:,', max_size=60) | st.integers(20, 60).map("x".__mul__)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
results = st.fixed_dictionaries(
    {"content": st.lists(values, max_size=4)},
    optional={"structuredContent": values, "isError": st.booleans(), "resultType": texts, "_meta": values},
)
spoilt = st.sampled_from([b"", b'"', b"\\", b"\\u", b"\\ud800", b"\0", b"\x1f", b"\x7f", b"\xff", b"{", b"}", b","])


@pytest.fixture(autouse=True, scope="module")
def of_any_size() -> Iterator[None]:
    with patch.multiple(longtexts, _LONG=20, _PER_QUOTE=1, _MOST_LEFT=64 * LARGE), patch.object(result, "LARGE", 0):
        yield


def seen(raw: bytes) -> Any:
    try:
        shown = result.view(raw)
    except result.NotAResult as error:
        return str(error)
    return bytes(shown.content), bytes(shown.structured_content), shown.is_error, shown.result_type


def seen_byte_by_byte(raw: bytes) -> Any:
    with patch.object(result, "LARGE", len(raw) + 1):
        return seen(raw)


@given(results, st.booleans(), st.sampled_from([(",", ":"), (" ,\n", " : ")]), spoilt, st.floats(0, 1))
def test_what_is_seen_is_what_a_look_at_every_byte_sees(
    value: dict[str, Any], ascii_only: bool, separators: tuple[str, str], spoil: bytes, where: float
) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode()
    at = int(where * len(raw))
    raw = raw[:at] + spoil + raw[at:]
    assert seen(raw) == seen_byte_by_byte(raw)


@given(st.lists(st.sampled_from([b'"', b"\\", b"x" * 30, b"{", b"}", b":", b",", b'"content"', b"\n", b"1"])))
@example([b'{"content":"', b"x" * 30])
@example([b'{"content":"', b"x" * 30, b'\\"'])
@example([b'{"resultType":"', b"x" * 30, b'"}'])
@example([b'{"resultType":"', b"x" * 30, b'\xff"}'])
@example([b'{"', b"x" * 30, b'":1,"content":[],"content":["', b"x" * 30, b'"]}'])
def test_any_bytes_are_seen_alike(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    assert seen(raw) == seen_byte_by_byte(raw)


def test_a_long_plain_text_is_left_out_and_its_place_is_known() -> None:
    raw = b'{"a":"%s","b":[1,"%s"]}' % (b"x" * 50, b"y" * 70)
    bare = bare_of(raw)
    assert bare is not None and bare.text == b'{"a":"","b":[1,""]}'
    assert raw[bare.place(bare.text.index(b"[")) : bare.place(len(bare.text) - 1)] == b'[1,"%s"]' % (b"y" * 70)


def test_a_text_that_has_to_be_read_stays() -> None:
    for text in (b"x" * 50 + b"\\n", b"x" * 50 + b"\x01", b"\n" + b"x" * 50):
        raw = b'{"a":"%s"}' % text
        assert bare_of(raw) == (raw, [])


def test_very_many_strings_are_left_to_the_parser() -> None:
    raw = json.dumps({"content": ["x"] * LARGE}).encode()
    assert bare_of(raw) is not None
    with patch.object(longtexts, "_PER_QUOTE", _PER_QUOTE):
        assert bare_of(raw) is None
        assert seen(raw) == seen_byte_by_byte(raw)


@pytest.mark.parametrize("rows", [b"[],", b"{},", b"1,", b"[[[[]]]],", b"      "])
def test_a_result_with_much_beside_its_long_texts_is_left_to_the_parser(rows: bytes) -> None:
    raw = b'{"content":["%s",%s 1]}' % (b"x" * LARGE, rows * 3000)
    assert bare_of(raw) is not None
    with patch.object(longtexts, "_MOST_LEFT", _MOST_LEFT):
        assert bare_of(raw) is None
        assert seen(raw) == seen_byte_by_byte(raw)
