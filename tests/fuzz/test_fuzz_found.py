"""What fuzzing the two lanes has found, each by its name: what was wrong must not come back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.fuzz.bodies import CAPABILITIES, CLIENT, VERSION
from tests.fuzz.heads import CLOSED_SESSION, OTHER_SESSION, SESSION, Head, valid_head
from tests.fuzz.lanes import PLAIN, Lanes, Posted, fuzzed, verdict

CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"call_tool_read","arguments":%s%s}}'
META = f',"_meta":{{"{VERSION}":"2026-07-28","{CLIENT}":{{"name":"fuzz","version":"1"}},"{CAPABILITIES}":{{}}}}'
VERSIONED = (b"MCP-Protocol-Version", b"2025-11-25")
INTERNAL_ERROR = b"-32603"
LINE = '{"name":"echo:line"}'


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lanes]:
    with fuzzed(tmp_path_factory.mktemp("found"), max_request_bytes=6 * 1024 * 1024) as started:
        yield started


def call(modern: bool, *, request_id: str = "1", arguments: str = LINE, head: Head | None = None) -> Posted:
    """A call that is valid but for what the test changes."""
    body = CALL % (request_id, arguments, META if modern else "")
    return Posted(head or valid_head(modern, b"call_tool_read"), body.encode())


def same(lanes: Lanes, posted: Posted) -> tuple[int, bytes]:
    """The answer that both lanes give."""
    lanes.ask(call(True), lane=True)  # so that the lane knows the envelope
    answer, records = lanes.ask(posted, lane=True)
    alone, recorded = lanes.ask(posted, lane=False)
    assert verdict(answer) == verdict(alone)
    assert records == recorded
    return answer.status, answer.messages[-1] if answer.messages else b""


@pytest.mark.parametrize("depth", [190, 260, 900])
@pytest.mark.parametrize("modern", [False, True])
def test_nesting_that_the_sdk_refuses_is_refused_on_the_lane(lanes: Lanes, modern: bool, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    status, _ = same(lanes, call(modern, arguments=f'{{"name":"echo:line","args":{deep}}}'))
    assert status == (400 if depth > 200 and not modern else 200)


def test_a_number_too_long_to_read_is_refused_on_the_lane(lanes: Lanes) -> None:
    status, message = same(lanes, call(False, arguments=f'{{"name":"echo:line","args":{{"n":{"9" * 5000}}}}}'))
    assert (status, json.loads(message)["error"]["code"]) == (400, -32700)


def test_half_an_emoji_as_the_id_is_answered(lanes: Lanes) -> None:
    status, message = same(lanes, call(True, request_id='"\\ud83d"'))
    assert (status, json.loads(message)["id"]) == (200, "\ud83d")


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize(
    ("good", "broken"),
    [
        (b"tools/call", b"tools/\xffcall"),
        (b'"params"', b'"par\xffams"'),
        (b'"arguments":{"name"', b'"arguments":{"na\xed\xa0\x80me"'),
        (b"echo:line", b"echo:\xed\xa0\x80line"),
        (b'"name":"call', b'"x\xed\xa0\x80":1,"name":"call'),
    ],
)
def test_broken_utf_8_is_never_a_fault_of_ours(lanes: Lanes, modern: bool, good: bytes, broken: bytes) -> None:
    posted = call(modern)
    status, message = same(lanes, Posted(posted.head, posted.body.replace(good, broken)))
    assert status < 500 and INTERNAL_ERROR not in message


def test_a_content_type_that_only_we_would_take_is_left_to_the_sdk(lanes: Lanes) -> None:
    head = [(name, b"application/JSON" if name == b"Content-Type" else value) for name, value in valid_head(False, b"")]
    assert same(lanes, call(False, head=head))[0] == 415


def test_the_first_call_of_a_modern_client_has_its_name_on_record(lanes: Lanes) -> None:
    posted = call(True)
    body = posted.body.replace(b'"name":"fuzz"', b'"name":"newcomer"')
    _, records = lanes.ask(Posted(posted.head, body), lane=True)
    assert [record.client_name for record in records] == ["newcomer"]


def test_a_body_over_the_sdks_own_limit_is_taken_where_the_operator_allows_it(lanes: Lanes) -> None:
    big = f'{{"name":"echo:line","args":{{"text":"{"x" * (5 * 1024 * 1024)}"}}}}'
    for modern in (False, True):
        assert same(lanes, call(modern, arguments=big))[0] == 200


def test_a_session_opened_by_an_odd_handshake_is_counted_and_belongs_to_its_caller(lanes: Lanes) -> None:
    before = len(lanes.sessions())
    info = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"odd","version":"1"},"x":NaN}'
    opened = lanes.post(PLAIN, b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}' % info.encode())
    assert opened.status == 200 and opened.session is not None
    assert len(lanes.sessions()) == before + 1
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    stranger = [*PLAIN, lanes.token, (b"Mcp-Session-Id", opened.session.encode())]
    assert lanes.post(stranger, ping).status == 404


@pytest.mark.parametrize("order", [(SESSION, OTHER_SESSION), (OTHER_SESSION, SESSION), (SESSION, SESSION)])
def test_two_session_ids_reach_no_session_at_all(lanes: Lanes, order: tuple[bytes, bytes]) -> None:
    head = [*valid_head(False, b"")[:2], *((b"Mcp-Session-Id", one) for one in order)]
    assert same(lanes, call(False, head=head))[0] == 400


@pytest.mark.parametrize("around", [b"%s ", b"%s\t", b" \t%s \t"])
def test_white_space_around_a_session_id_hides_it_from_no_check(lanes: Lanes, around: bytes) -> None:
    head = [*PLAIN, VERSIONED, (b"Mcp-Session-Id", around % OTHER_SESSION)]
    assert same(lanes, call(False, head=head))[0] == 404
    assert same(lanes, call(False, head=[*head, lanes.token]))[0] == 200


def test_a_session_is_closed_for_the_lane_as_soon_as_its_end_was_confirmed(lanes: Lanes) -> None:
    for _ in range(50):
        lanes.open_and_close()
        assert same(lanes, call(False, head=[*PLAIN, VERSIONED, (b"Mcp-Session-Id", CLOSED_SESSION)]))[0] == 404
