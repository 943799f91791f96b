"""Are JSON-RPC messages read and written without touching what they carry?"""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.wire import envelope
from mcpproxy.wire.envelope import Message
from mcpproxy.wire.errors import InvalidAnswer

ODD_RESULTS = [
    b'{"n":1.0}',
    b'{"n":1e2,"m":1E5,"k":-0,"j":-0.0}',
    b'{"n":12345678901234567890123}',
    b'{"n":0.10}',
    b'{"n":1e400,"m":-1e400}',
    b'{"a":1,"a":2,"a":{"a":1,"a":1}}',
    b'{ "a" :\t[ 1 ,\r\n2 ] }',
    rb'{"t":"\u0041\/\b\"\\ \ud83d\ude00"}',
    '{"t":"naïve 😀 \u2028"}'.encode(),
    b"null",
    b"[]",
    b'"text"',
    b"0",
]
LONE_SURROGATES = [
    rb'{"t":"cut in mid-emoji \ud83d"}',
    rb'{"t":"\udc00","n":[1.0,0.10,1e400,12345678901234567890123],"d":1,"d":2}',
    rb'{ "t" : [ "\uD83D\uD83D" ] }',
]

json_text = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode())


def one(data: bytes) -> Message:
    (message,) = envelope.decode(data)
    return message


# Reading.


@pytest.mark.parametrize("result", [*ODD_RESULTS, *LONE_SURROGATES])
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":7,"result":%s}',
        b'{"jsonrpc": "2.0", "result": %s, "id": 7}',
        b' {"result":%s\t,"extra":{"id":8,"result":0},"id":7,"jsonrpc":"2.0"} ',
        b'{"id":7,"result":%s,"error":null}',
    ],
)
def test_a_result_is_handed_on_byte_for_byte(frame: bytes, result: bytes) -> None:
    message = one(frame % result)
    assert (message.id, message.result) == (7, result)


@pytest.mark.parametrize("body", [*ODD_RESULTS, *LONE_SURROGATES])
def test_the_params_of_a_notice_are_kept_byte_for_byte(body: bytes) -> None:
    message = one(b'{"method":"notifications/message","params":%s}' % body)
    assert (message.id, message.method, message.params) == (None, "notifications/message", body)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"7", 7),
        (b"7.0", 7),
        (b"-7", -7),
        (b'"7"', "7"),
        (b'"abc"', "abc"),
        (b"null", None),
        (b"7.5", None),
        (b"12345678901234567890123", 12345678901234567890123),
        (b"1e400", None),
        (b"true", None),
        (b"{}", None),
        (rb'"\ud800"', None),
        (b"9" * 5000, None),
    ],
)
def test_an_id_is_read_as_the_number_or_text_it_means(written: bytes, meant: object) -> None:
    assert one(b'{"id":%s,"result":{}}' % written).id == meant


def test_an_id_is_read_the_same_beside_a_lone_surrogate() -> None:
    assert one(rb'{"id":7.0,"result":"\ud800"}').id == 7


def test_the_last_of_two_equal_members_counts_for_both_parsers() -> None:
    assert one(b'{"id":1,"id":2,"result":1,"result":2}') == Message(id=2, result=b"2")
    assert one(rb'{"id":1,"id":2,"result":1,"result":2,"x":"\ud800"}') == Message(id=2, result=b"2")


def test_a_batch_is_read_one_by_one() -> None:
    batch = rb' [ {"id":1,"result":{"n":1.0}} , {"method":"m"},{"id":2,"error":{"code":-1,"message":"\ud800"}}]'
    first, second, third = envelope.decode(batch)
    assert first == Message(id=1, result=b'{"n":1.0}')
    assert second == Message(method="m")
    assert third == Message(id=2, error=rb'{"code":-1,"message":"\ud800"}')
    assert envelope.decode(b"[]") == []


def test_a_large_batch_of_tiny_elements_is_refused_before_it_costs_memory() -> None:
    with pytest.raises(InvalidAnswer, match="batch"):
        envelope.decode(b"[" + b"{}," * 1_000_000 + b"{}]")


def test_the_tolerant_parser_reads_only_so_many_members_of_a_message() -> None:
    many = b'"a":0,' * 21_000
    with pytest.raises(InvalidAnswer, match="more than 20000 entries"):
        one(rb'{%s"id":1,"result":"\ud800"}' % many)
    # What is within a value stays as it is.
    assert one(rb'{"id":1,"result":{%s"t":"\ud800"}}' % many).id == 1


@pytest.mark.parametrize("last", [b"{}", rb'{"t":"\ud800"}'], ids=["plain", "for the tolerant parser"])
def test_a_batch_of_very_many_messages_is_refused_before_any_is_read(last: bytes) -> None:
    assert len(envelope.decode(b"[" + b"{}," * 999 + last + b"]")) == 1000
    with pytest.raises(InvalidAnswer, match="more than 1000 messages"):
        envelope.decode(b"[" + b"{}," * 1000 + last + b"]")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   ",
        b"hello",
        b"5",
        b'"text"',
        b"[5]",
        b'{"id":1,"result":{}} trailing',
        b'{"id":1,"result":{"a":1}',
        b'{"id":1,"result":{},}',
        b'{"id":1 "result":{}}',
        b'{5:1,"t":"\\ud800"}',
        b'{"id":1,"result":{"n":NaN}}',
        b'{"id":1,"result":[Infinity,-Infinity]}',
        b'{"id":1,"result":01}',
        b'{"id":1,"result":"line\nbreak"}',
        b'{"id":1,"result":"\xff"}',
        b'{"id":1,"result":{"a":"\xed\xa0\x80","b":"\\ud800"}}',
        '{"id":1,"result":{}}'.encode("utf-16"),
        '{"id":1,"result":{}}'.encode("utf-32"),
        b'{"method":5,"params":{}}',
        b'{"id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id":1,"result":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=lambda data: repr(data[:32]),
)
def test_what_is_no_message_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(InvalidAnswer) as refusal:
        envelope.decode(data)
    assert str(refusal.value)


@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass"))
    | json_text
    | st.lists(
        st.sampled_from(
            [
                *b'{ } [ ] , : " \\ \\ud800 "id" "result" "method" "error" "params" "x" 1 - . e9 null NaN'.split(),
                b" ",
                b"\n",
                b"\xff",
                b"\xed\xa0\x80",
            ]
        ),
        max_size=24,
    ).map(b"".join)
)
def test_reading_never_raises_anything_but_a_refusal(data: bytes) -> None:
    try:
        messages = envelope.decode(data)
    except InvalidAnswer:
        return
    for message in messages:
        for body in filter(None, (message.params, message.result, message.error)):
            json.loads(body.decode(), parse_constant=pytest.fail)


@given(json_text, st.binary(max_size=40), st.binary(max_size=40))
def test_salvage_never_raises(middle: bytes, head: bytes, tail: bytes) -> None:
    envelope.salvage_id(head + middle, middle + tail)
    envelope.salvage_whole(head + middle + tail)
    envelope.error_body(head + middle)


# Writing.


@given(st.integers(min_value=0) | st.text(max_size=20).filter(str.isprintable), st.text(max_size=20), json_text)
def test_a_request_can_be_read_back(request_id: int | str, method: str, params: bytes) -> None:
    message = one(envelope.request(request_id, method, params))
    assert (message.id, message.method, message.params) == (request_id, method, params)


@given(st.integers(min_value=0), json_text)
def test_an_answer_can_be_read_back(request_id: int, result: bytes) -> None:
    assert one(envelope.answer(request_id, result)) == Message(id=request_id, result=result)


def test_a_notification_and_a_failure_can_be_read_back() -> None:
    assert one(envelope.notification("m", b"")) == Message(method="m")
    assert one(envelope.notification("m", b'{"a":1.0}')) == Message(method="m", params=b'{"a":1.0}')
    failed = one(envelope.failure("x", -32000, 'no "way"'))
    assert failed.id == "x"
    assert envelope.error_body(failed.error) == envelope.ErrorBody(-32000, 'no "way"')


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (b"", b'{"_meta":{"m":1}}'),
        (b"{}", b'{"_meta":{"m":1}}'),
        (b" { \n } ", b' {"_meta":{"m":1}}'),
        (b'{"a":1.0}', b'{"a":1.0,"_meta":{"m":1}}'),
        (b'{ "a" : {} \t}\n', b'{ "a" : {},"_meta":{"m":1}}'),
        (b'{"a":"}"}', b'{"a":"}","_meta":{"m":1}}'),
    ],
)
def test_meta_is_put_last_and_the_rest_stays_as_it_was(params: bytes, expected: bytes) -> None:
    assert envelope.with_meta(params, b'"m":1') == expected
    assert msgspec.json.decode(expected)["_meta"] == {"m": 1}
    assert envelope.with_meta(params, b"") == params


@given(json_text)
def test_one_line_is_one_line_and_the_same_value(value: bytes) -> None:
    spread = json.dumps(json.loads(value), indent=1).replace("\n", "\r\n").encode()
    line = envelope.one_line(spread)
    assert b"\n" not in line and b"\r" not in line
    assert json.loads(line) == json.loads(value)


# What is left of a broken or oversized answer.


@pytest.mark.parametrize(
    ("head", "tail", "owner"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x', b"", 7),
        (b' { "id" : "7" , "jsonrpc":"2.0", "result":[', b"", "7"),
        (b'{"jsonrpc":"2.0","id":-3,"error":{"m', b"", -3),
        (b'{"jsonrpc":"2.0","id":7,', b"", 7),
        (b'{"jsonrpc":"2.0","id":7', b"", None),  # it might have gone on
        (b'{"result":{"x', b'x"},"jsonrpc":"2.0","id":7}', 7),
        (b'{"result":{"x', b'x"} , "id" : 7 , "jsonrpc":"2.0" } ', 7),
        (b'{"result":{"id":9,"x', b'x","id":9}}', None),
        (b'{"result":{"id":9,"x', b'x","id":9}]}', None),
        (b'{"result":{"id":9,"x', rb"x\",\"id\":9}" + b'"}', None),
        (b'{"x":{},"id":9,"result":{"x', b"", None),
        (b'{"id":9,"method":"sampling/createMessage","params":{"x', b"", None),
        (b'{"method":"notifications/message","params":{"x', b'x"},"id":9}', None),
        (b'{"id":7.0,"result":{"x', b"", None),
        (b"", b"", None),
        (b"hello", b"world", None),
    ],
)
def test_a_lost_answer_is_told_by_the_id_of_its_own_envelope(head: bytes, tail: bytes, owner: object) -> None:
    assert envelope.salvage_id(head, tail) == owner


@pytest.mark.parametrize(
    ("data", "owner"),
    [
        (b'{"result":{"t":"\xff"},"id":7}', 7),
        (b'{"result":{"t":"} { \\" ]\xff"},"id":7}', 7),
        (b'{"result":{"items":[{"t":"\xff","id":9}', None),
        (b'{"result":{"t":"\xff","id":9}', None),
        (b'{"id":7,"result":{"t":"\xff","id":9}', 7),
    ],
)
def test_a_half_answer_is_never_told_by_an_id_inside_it(data: bytes, owner: object) -> None:
    assert envelope.salvage_whole(data) == owner


# Bodies, decoded.


@pytest.mark.parametrize(
    ("raw", "code", "message"),
    [
        (b'{"code":-32601,"message":"no"}', -32601, "no"),
        (b'{"code":-1,"message":"no","data":{"a":[1]},"x":1}', -1, "no"),
        (b"{}", -32603, "unspecified error"),
        (b'"just text"', -32603, 'malformed error: "just text"'),
        (b'{"code":"five","message":"no"}', -32603, 'malformed error: {"code":"five","message":"no"}'),
        (rb'{"code":1,"message":"\ud800"}', -32603, r'malformed error: {"code":1,"message":"\ud800"}'),
    ],
)
def test_an_error_says_what_it_says_however_loosely_it_was_written(raw: bytes, code: int, message: str) -> None:
    body = envelope.error_body(raw)
    assert (body.code, body.message) == (code, message)


def test_a_body_is_decoded_for_the_sdk_without_lone_surrogates() -> None:
    assert envelope.as_dict(b"") == {}
    assert envelope.as_dict(b'{"a":1.5}') == {"a": 1.5}
    assert envelope.as_dict(rb'{"a":"x\ud800y","b":"\ud83d\ude00"}') == {"a": "x?y", "b": "😀"}
    for bad in (b"[]", b"nonsense", b"[" * 100_000):
        with pytest.raises(InvalidAnswer):
            envelope.as_dict(bad)
