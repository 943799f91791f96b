"""Values and foreign text as people see them."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.web.text import moment, pretty, share, span, took, visible


def test_foreign_text_is_escaped_and_hidden_characters_are_seen() -> None:
    shown = str(visible("<b>\u200b\n\t\U000e0041é"))
    assert shown.startswith("&lt;b&gt;<span")
    assert "U+200B" in shown
    assert "U+E0041" in shown
    assert shown.endswith("é")
    assert "\n\t" in shown


@given(st.text())
def test_no_text_brings_markup_of_its_own(text: str) -> None:
    shown = str(visible(text))
    rest = shown.replace('<span class="unseen" title="A character that is not seen">', "").replace("</span>", "")
    assert "<" not in rest
    assert ">" not in rest


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(values)
def test_pretty_json_is_the_same_json(value: object) -> None:
    assert json.loads(pretty(json.dumps(value))) == value


def test_pretty_json_keeps_every_number_and_text_as_it_was_written() -> None:
    assert pretty('{"a":1.10,"b":[],"c":[1e400,"x,{}"],"d":{}}') == (
        '{\n  "a": 1.10,\n  "b": [],\n  "c": [\n    1e400,\n    "x,{}"\n  ],\n  "d": {}\n}'
    )


@pytest.mark.parametrize("text", ["not json", "{", "[" * 100_000])
def test_what_is_not_json_stays_as_it_is(text: str) -> None:
    assert pretty(text) == text


def test_times_name_their_zone_until_a_script_knows_the_readers() -> None:
    at = datetime(2026, 1, 15, 12, 34, 56, 789_000, tzinfo=UTC)
    assert str(moment(at)) == '<time datetime="2026-01-15T12:34:56.789Z">2026-01-15 12:34:56 UTC</time>'


def test_lengths_and_shares_have_the_precision_that_a_person_wants() -> None:
    assert [span(seconds) for seconds in (0.4, 59, 120, 7200, 200_000)] == ["0 s", "59 s", "2 min", "2 h", "2 days"]
    assert [took(ms) for ms in (None, 0.42, 42, 4200, 420_000)] == ["", "0.4 ms", "42 ms", "4.2 s", "7 min"]
    assert [share(*pair) for pair in ((0, 0), (0, 9), (1, 100_000), (1, 30), (1, 2))] == [
        "0 %",
        "0 %",
        "< 0.1 %",
        "3.3 %",
        "50 %",
    ]
