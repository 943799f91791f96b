"""Text that nobody vouches for does nothing to a terminal."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.cli.clean import clean, clean_lines, escaped_json

HOSTILE = {
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "cursor and erase": ("a\x1b[2J\x1b[1;1Hb\x1b[1A\x1b[2Kc", "abc"),
    "title": ("a\x1b]0;pwned\x07b", "ab"),
    "link": ("\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
    "clipboard": ("\x1b]52;c;cm0gLXJmIC8=\x07x", "x"),
    "device string": ("a\x1bP1$r0m\x1b\\b", "ab"),
    "charset and reset": ("\x1b(0q\x1bc", "q"),
    "eight-bit controls": ("a\x9b31mb\x9d0;t\x9cc", "abc"),
    "carriage return": ("safe\rEVIL", "safe EVIL"),
    "backspace, bell, delete": ("ab\x08\x07\x7fc", "abc"),
    "direction": ("\u202egnp.exe\u202c\u2066x\u2069", "gnp.exex"),
    "zero width and tags": ("a\u200bb\u2060c\U000e0041d", "abcd"),
    "blank letters": ("a\u3164b", "ab"),
    "lone surrogate": ("a\ud800b", "ab"),
    "unfinished sequence": ("a\x1b[31", "a31"),
    "lines": ("one\n\ttwo\u2028three", "one twothree"),
    "markup stays text": ("[bold red]x[/] [link=http://e]y[/link]", "[bold red]x[/] [link=http://e]y[/link]"),
}


@pytest.mark.parametrize(("text", "shown"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_becomes_plain_text_on_one_line(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("Straße, 東京 and naïve café ✓ 🎉", "path/to [1, 2] {x: y} 100 %"):
        assert clean(text) == text
        assert clean_lines(text) == text


def test_lines_and_indentation_survive_where_they_are_wanted() -> None:
    assert clean_lines("a\r\n\tb\x1b[1m\n  c") == "a\n    b\n  c"


@given(st.text(st.characters()))
def test_nothing_that_a_terminal_obeys_is_ever_left(text: str) -> None:
    for left in (clean(text), clean_lines(text).replace("\n", "")):
        assert not re.search("[\x00-\x1f\x7f-\x9f]", left)
        assert not any(unicodedata.category(char) in ("Cf", "Cs", "Zl", "Zp") for char in left)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escaped_json_means_the_same_and_is_harmless(text: str) -> None:
    shown = escaped_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(shown) == {"text": text}
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069]", shown)
