"""What is kept of a record: no secret, no more than allowed, nothing that a database refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpproxy.activity.prepare import clean, derived, prepare
from mcpproxy.activity.record import Linked, Record
from mcpproxy.policy.intent import Intent

Make = Callable[..., Record]


def keep(record: Record, limit: int = 65_536, mask: Callable[[str], str] = str) -> Linked:
    return prepare(record, "writer", 1, limit, mask).record


def kept(text: bytes, limit: int = 65_536, mask: Callable[[str], str] = str) -> str:
    record = Record(type="tool_call", source="mcp", status="success", response=Raw(text))
    return bytes(keep(record, limit, mask).response).decode()


@pytest.mark.parametrize(
    "text", ['{"b":1,"a":0.10}', '{"a":1e400}', '{"a":1,"a":2}', '"\\ud83d"', '"\\u0000"', "12345678901234567890123"]
)
def test_json_is_kept_as_it_came(text: str) -> None:
    assert kept(text.encode()) == text


def test_a_payload_of_many_lines_becomes_one_line() -> None:
    assert kept(b'{\r\n  "a": "x\\ny"\n}') == '{    "a": "x\\ny" }'


@pytest.mark.parametrize(
    "text", [b"not json", b'{"a":', b"\x00\xff", b"NaN", b"[" * 5000 + b"]" * 5000, b'{"a":1} {"b":2}']
)
def test_what_is_no_json_is_kept_as_a_text(text: bytes) -> None:
    assert json.loads(kept(text)) == text.decode("utf-8", "replace")


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert kept(b'{"a":"\xff\xed\xa0\x80"}') == '{"a":"����"}'


def test_a_payload_at_the_limit_is_whole_and_one_byte_more_is_cut_and_marked() -> None:
    text = b'"' + b"x" * 98 + b'"'
    assert kept(text, 100) == text.decode()
    assert json.loads(kept(text, 99)) == {
        "truncated": True,
        "original_bytes": 100,
        "beginning": '"' + "x" * 98,
    }


def test_a_cut_within_a_character_leaves_no_half_of_it() -> None:
    assert json.loads(kept('"éé"'.encode(), 4))["beginning"] == '"é'


def test_a_secret_across_the_cut_is_masked_before_it_is_cut() -> None:
    text = b'"' + b"x" * 90 + b'topsecret"'
    shown = kept(text, 95, lambda text: text.replace("topsecret", "***"))
    assert "top" not in shown
    assert json.loads(shown)["beginning"] == '"' + "x" * 90 + '***"'[:4]


def test_a_mask_that_breaks_the_json_leaves_a_text() -> None:
    shown = kept(b'{"a":123456}', mask=lambda text: text.replace("123456", "***"))
    assert json.loads(shown) == '{"a":***}'


def test_metadata_keeps_nul_and_lone_surrogates_as_escapes(call: Make) -> None:
    metadata = {"intent": {"operation_type": "write", "reason": "a\0b\ud83d"}}
    text = bytes(keep(call(metadata=metadata)).metadata)
    assert text.isascii()
    assert json.loads(text) == metadata


def test_metadata_of_a_kind_that_json_lacks_is_kept_as_text(call: Make) -> None:
    metadata: dict[str, Any] = {"where": object}
    assert json.loads(bytes(keep(call(metadata=metadata)).metadata)) == {"where": "<class 'object'>"}


def test_oversized_metadata_keeps_the_intent_and_says_what_it_was(call: Make) -> None:
    intent = {"operation_type": "read"}
    big = call(metadata={"intent": intent, "diff": "x" * 300_000})
    found = json.loads(bytes(keep(big).metadata))
    assert found["intent"] == intent
    assert found["truncated"] is True
    assert found["original_bytes"] > 300_000


def test_names_lose_what_a_database_refuses_and_are_bounded(call: Make) -> None:
    record = keep(call("a\0b\ud83dc" + "x" * 5000, client_name="\ud83d\ude00"))
    assert record.tool_name is not None
    assert record.tool_name.startswith("a�b�c")
    assert len(record.tool_name) == 256
    assert record.client_name == "😀"


def test_a_long_error_is_cut_and_says_so(call: Make) -> None:
    error = keep(call(error_message="x" * 100_000)).error_message
    assert error is not None
    assert error.endswith("… (cut: 100000 characters in all)")
    assert len(error) < 8300


def test_the_intent_and_the_words_of_tool_error_and_reason_are_worked_out(call: Make) -> None:
    record = keep(call("createIssue", reason="Because of a Bug", error_message="HTTP-503: no_route"))
    assert derived(record) == ("write", "create issue createissue http 503 no route because of a bug")


def test_an_intent_is_worked_out_in_the_form_in_which_calls_hand_it_over(call: Make) -> None:
    record = call("plain", metadata={"intent": Intent("destructive", reason="Tidying up")})
    assert prepare(record, "writer", 1, 65_536, str).intent_type == "destructive"
    assert derived(keep(record)) == ("destructive", "plain tidying up")


@pytest.mark.parametrize("metadata", [{}, {"intent": "read"}, {"intent": {"operation_type": "other", "reason": 5}}])
def test_odd_intents_are_no_intent(call: Make, metadata: dict[str, Any]) -> None:
    assert derived(keep(call(metadata=metadata))) == (None, "create issue")


@given(st.binary(max_size=200), st.integers(0, 50))
def test_whatever_comes_in_is_one_line_of_json_within_bounds(data: bytes, limit: int) -> None:
    text = kept(data, limit)
    assert "\n" not in text
    assert "\r" not in text
    json.loads(text)
    text.encode()


@given(st.text(st.characters(exclude_categories=[])))
def test_a_clean_text_has_neither_nul_nor_lone_surrogates(text: str) -> None:
    assert "\0" not in clean(text)
    clean(text).encode()
