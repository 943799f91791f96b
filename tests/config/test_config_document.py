"""JSON as people and editors write it."""

from __future__ import annotations

import json

import pytest

from mcpproxy.config.document import MAX_BYTES, decode
from mcpproxy.config.errors import ConfigError


def problem(data: bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        decode(data)
    return str(caught.value.problems[0])


def test_a_syntax_error_names_line_and_column() -> None:
    data = b'{\n  "listen": "127.0.0.1:8080"\n  "tools_limit": 15\n}'
    assert problem(data) == "line 3, column 3: expecting ',' delimiter; correct the JSON there"


def test_line_and_column_stay_true_after_comments() -> None:
    data = b'{ /* two\nlines */ "a": 1, // more\n  "b" 2}'
    assert problem(data).startswith("line 3, column 7: ")


def test_a_byte_order_mark_is_tolerated() -> None:
    assert decode(b'\xef\xbb\xbf{"a": 1}').value == {"a": 1}


def test_comments_and_trailing_commas_are_read_but_remembered() -> None:
    data = b'{"u": "http://x/*y*/", // why\n "l": [1, 2,], /* end, */ }'
    document = decode(data)
    assert document.value == {"u": "http://x/*y*/", "l": [1, 2]}
    assert document.has_comments


def test_trailing_commas_alone_are_no_comments() -> None:
    assert not decode(b'{"a": [1,],}').has_comments


def test_an_escaped_quote_does_not_end_a_text() -> None:
    assert decode(rb'{"a": "x\" // no comment", "b": "\\"}').value == {"a": 'x" // no comment', "b": "\\"}


@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused_rather_than_taken_as_the_defaults(data: bytes) -> None:
    assert problem(data) == "it is empty; write {} for the defaults"


@pytest.mark.parametrize("data", [b"[]", b"null", b"5", b'"canary"'])
def test_the_top_must_be_an_object(data: bytes) -> None:
    assert problem(data).endswith("it must be an object: { … }")
    assert "canary" not in problem(data)


def test_a_key_written_twice_is_refused_since_one_of_them_would_be_lost() -> None:
    assert problem(b'{"mcpServers": {"a": {}, "a": {}}}') == 'mcpServers: the key "a" stands there twice; keep one'


def test_text_that_is_not_utf8_names_the_line() -> None:
    assert problem(b'{\n"a": "\xff"}') == "line 2 is not UTF-8 text; save it as UTF-8"


def test_utf16_is_named() -> None:
    assert problem('{"a": 1}'.encode("utf-16")) == "it is UTF-16 text; save it as UTF-8"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[" * 200_000, "nested too deep"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "nested too deep"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "too many digits"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"\\ud800": 1}', "half a character"),
        (b'{"a": "' + b"x" * MAX_BYTES + b'"}', "at most 8388608 are read"),
    ],
)
def test_what_cannot_be_read_or_written_back_is_refused(data: bytes, words: str) -> None:
    assert words in problem(data)


@pytest.mark.parametrize("data", [b'{"' + b'\\"' * 200_000, b"/*" * 200_000, b"{" + b",   " * 200_000])
def test_unclosed_text_is_refused_at_once(data: bytes) -> None:
    assert "line 1" in problem(data)


def test_a_large_file_of_usual_content_is_read() -> None:
    servers = {f"s{n}": {"command": "x", "args": ["y"] * 10} for n in range(2000)}
    assert len(decode(json.dumps({"mcpServers": servers}).encode()).value["mcpServers"]) == 2000
