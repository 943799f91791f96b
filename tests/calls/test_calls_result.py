"""A raw result is looked at and, where it must be, changed in one place; every other byte stays."""

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpproxy.calls import result
from mcpproxy.calls.cache import TextCache
from mcpproxy.calls.longtexts import LARGE
from mcpproxy.calls.spans import members, replaced, without
from mcpproxy.policy.verdict import Refusal
from mcpproxy.wire import envelope
from mcpproxy.wire.errors import InvalidAnswer

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, min_size=1, max_size=6)
spaced = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")])


@given(objects, spaced)
def test_the_span_of_a_member_is_exactly_its_value(value: dict[str, Any], separators: tuple[str, str]) -> None:
    text = json.dumps(value, separators=separators)
    for name, span in members(text).items():
        assert json.loads(text[span.start : span.end]) == value[name]


@given(objects, spaced, st.data())
def test_replacing_a_member_leaves_all_others_alone(
    value: dict[str, Any], separators: tuple[str, str], data: st.DataObject
) -> None:
    text = json.dumps(value, separators=separators)
    name = data.draw(st.sampled_from(sorted(value)))
    changed = replaced(text, members(text)[name], '"new"')
    assert json.loads(changed) == {**value, name: "new"}


@given(objects, spaced, st.data())
def test_taking_a_member_out_leaves_an_object_with_all_others(
    value: dict[str, Any], separators: tuple[str, str], data: st.DataObject
) -> None:
    text = json.dumps(value, separators=separators)
    name = data.draw(st.sampled_from(sorted(value)))
    assert json.loads(without(text, members(text)[name])) == {key: item for key, item in value.items() if key != name}


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_a_view_or_no_result_and_nothing_else_is_raised(data: bytes) -> None:
    with contextlib.suppress(result.NotAResult):
        result.view(data)


@given(objects)
def test_the_result_type_is_added_beside_what_is_there(value: dict[str, Any]) -> None:
    value.pop("resultType", None)
    raw = json.dumps(value).encode()
    assert json.loads(result.complete(raw)) == {"resultType": "complete", **value}
    assert json.loads(result.complete(b" {} ")) == {"resultType": "complete"}


def test_a_result_with_half_an_emoji_is_read_all_the_same() -> None:
    raw = b'{"content":[],"structuredContent":{"a":"\\ud83d"},"isError":true,"resultType":"input_required"}'
    shown = result.view(raw)
    assert bytes(shown.structured_content) == b'{"a":"\\ud83d"}'
    assert shown.is_error and shown.result_type == "input_required"


@pytest.mark.parametrize("raw", [b"7", b"[]", b'"x"', b"", b"{", b'{"isError":"yes"}', b'{"a":1}x'])
def test_what_is_no_result_is_said_to_be_none(raw: bytes) -> None:
    with pytest.raises(result.NotAResult):
        result.view(raw)


def judged(message: bytes) -> tuple[Any, ...] | str:
    """What comes of an upstream's message: the parts of its result, or nothing that is handed on."""
    try:
        (read,) = envelope.decode(message)
        shown = result.view(read.result)
    except (InvalidAnswer, result.NotAResult):
        return "refused"
    assert read.result in message
    return read.id, shown.is_error, shown.result_type, bytes(shown.structured_content), bytes(shown.content)


ANSWERS = [b'{"jsonrpc":"2.0","id":7,"result":%s}', b'{"result":%s,"jsonrpc":"2.0","id":7}']
WORDS = (
    b'{ } [ ] , : " \\ \\ud800 "content" "structuredContent" "isError" "resultType" "x" 1 -2e9 true null NaN'.split()
)
wild = st.lists(st.sampled_from([*WORDS, b"\xff", "ö".encode(), b" ", b"\n"]), max_size=24).map(b"".join)


@pytest.mark.parametrize("length", [20_000, 2 * LARGE])
@pytest.mark.parametrize("answer", ANSWERS)
@given(wild | objects.map(lambda value: json.dumps(value, ensure_ascii=False)[1:-1].encode(errors="surrogatepass")))
@example(b'"structuredContent":{"n":NaN}')
@example(b'"structuredContent":[Infinity]')
@example(b'"a":1},"id":8,"x":{')
@example(b'"structuredContent":{"a":"\\ud83d"},"isError":true')
@example(b'"content":["\xff"]')
@example(b'"isError":true,"isError":false')
def test_a_long_answer_is_judged_as_a_short_one(answer: bytes, length: int, inside: bytes) -> None:
    short = judged(answer % (b'{"pad":"",%s}' % inside))
    long = judged(answer % (b'{"pad":"%s",%s}' % (b"x" * length, inside)))
    if b'"id":8' not in inside:  # of two ids the last counts, which a long answer is not searched for
        assert long == short
    else:
        assert long == "refused"


@pytest.mark.parametrize(
    "message",
    [
        b'{"result":null,"error":{"code":5,"message":"%s"},"jsonrpc":"2.0","id":7}',
        b'{"result":{},"error":{"code":5,"message":"%s"},"jsonrpc":"2.0","id":7}',
        b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":5,"message":"%s","data":{}}}',
        b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"x":"%s"},"_meta":{}}',
        b'{"jsonrpc":"2.0","id":007,"result":{"content":[],"x":"%s"}}',
        b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"x":"%s","_meta":{"a":{}}}}',
        b'{"result":{"content":[],"x":"%s"},"jsonrpc":"2.0","id":7}',
    ],
)
def test_a_long_message_says_what_a_short_one_says(message: bytes) -> None:
    def said(filling: bytes) -> Any:
        try:
            (read,) = envelope.decode(message % filling)
        except InvalidAnswer:
            return "refused"
        return read.id, read.result.replace(filling, b""), read.error.replace(filling, b"")

    assert said(b"y" * 9000) == said(b"y")


def test_a_result_that_is_long_and_odd_is_not_looked_through_for_seconds() -> None:
    raw = b'{"content":[],"pad":"%s","odd":"\\ud800"}' % (b"x" * 9_000_000)
    with pytest.raises(result.NotAResult):
        result.view(raw)


def test_more_members_than_any_result_has_are_not_looked_through() -> None:
    with pytest.raises(result.NotAResult, match="more than 1000 members"):
        result.view(b'{"isError":"yes",%s}' % b",".join([b'"a":1'] * 1000))


def shown(*content: bytes) -> result.ResultView:
    """A view of a result with these blocks."""
    return result.view(b'{"content":[%s]}' % b",".join(content))


def test_masses_of_small_blocks_need_no_look() -> None:
    assert not result.has_long_text(shown(b'{"type":"text","text":""}', *([b"{}"] * 100_000)), 1000)
    assert not result.has_long_text(shown(*([b'{"type":"text","text":"a,b,c"}'] * 20_000)), 1000)


@pytest.mark.parametrize("text", ["x" * 1001, '"' * 1001, "\\" * 1001, '\\"' * 501, "," * 30_000])
def test_a_long_text_is_found_among_masses_of_blocks(text: str) -> None:
    long = msgspec.json.encode({"type": "text", "text": text})
    assert result.has_long_text(shown(b'{"type":"text","text":"short"}', *([b"{}"] * 20_000), long), 1000)


def test_as_many_blocks_as_are_allowed_are_all_there_and_one_more_is_refused() -> None:
    many = [b'{"n":%d}' % number for number in range(result.MAX_BLOCKS)]
    assert result.blocks(shown(*many)) == many
    assert result.first_blocks(shown(*many, b"{}"), 3) == many[:3]
    with pytest.raises(result.NotAResult, match="more than 10000 content blocks"):
        result.blocks(shown(*many, b"{}"))


@pytest.mark.parametrize("content", [b"7", b'"x"', b"null", b"{}", b'[{"a":1}%s' % (b" ," * 20_000)])
def test_content_that_is_no_list_has_no_blocks(content: bytes) -> None:
    assert result.blocks(result.ResultView(msgspec.Raw(content))) == []


def test_a_number_of_any_length_stays_where_it_is_when_something_else_is_changed() -> None:
    digits = b"1" * 5000  # more than Python turns into a number
    block = b'{"type":"text","text":"long","n":%s}' % digits
    raw = b'{"content":[%s],"structuredContent":[%s]}' % (block, digits)
    shorter = result.with_text(block, "l")
    assert shorter == block.replace(b"long", b"l")
    assert result.with_content(raw, [shorter]) == raw.replace(b"long", b"l")
    assert result.without_structured(raw) == b'{"content":[%s]}' % block


def test_a_refusal_is_a_result_with_the_code_in_structured_content() -> None:
    refusal = Refusal("TIMEOUT", "too slow", {"server": "a"})
    assert msgspec.json.decode(result.refused(refusal)) == {
        "content": [{"type": "text", "text": "too slow"}],
        "structuredContent": {"error": {"code": "TIMEOUT", "message": "too slow", "details": {"server": "a"}}},
        "isError": True,
        "resultType": "complete",
    }


def test_a_kept_text_is_there_for_its_owner_alone() -> None:
    cache = TextCache()
    key = cache.put("text", owner="ann", tool="a:b")
    assert key is not None
    kept = cache.get(key, owner="ann")
    assert kept is not None and kept.text == "text"
    assert cache.get(key, owner="bob") is None
    assert cache.get("other", owner="ann") is None


def test_the_oldest_texts_make_room_and_one_that_is_too_large_is_not_kept() -> None:
    cache = TextCache(max_bytes=100, max_entries=2)
    first, second, third = (cache.put("x" * 10, owner="a", tool="t") for _ in range(3))
    assert first is not None and second is not None and third is not None
    assert cache.get(first, owner="a") is None
    assert cache.get(second, owner="a") is not None and cache.get(third, owner="a") is not None
    assert cache.put("x" * 51, owner="a", tool="t") is None
    large = cache.put("x" * 45, owner="a", tool="t")
    assert large is not None and cache.get(third, owner="a") is None


def test_a_text_is_gone_after_its_lifetime() -> None:
    cache = TextCache(lifetime=-1)
    key = cache.put("text", owner="ann", tool="a:b")
    assert key is not None and cache.get(key, owner="ann") is None
