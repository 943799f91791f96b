"""Are server-sent events read as the standard says, within a bound?"""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.wire.events import Event, EventParser

LIMIT = 1000


def read(*chunks: bytes, limit: int = LIMIT) -> list[Event]:
    parser = EventParser(lambda: limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def message(data: bytes) -> Event:
    return Event("message", data, False)


def test_data_ends_with_an_empty_line() -> None:
    assert read(b"data: one\n\n", b"data:two\n\ndata: thr", b"ee\n", b"\n") == [
        message(b"one"),
        message(b"two"),
        message(b"three"),
    ]


def test_every_kind_of_line_end_counts_once() -> None:
    assert read(b"data: a\r\n\r\ndata: b\r\rdata: c\n\n") == [message(b"a"), message(b"b"), message(b"c")]
    assert read(b"data: a\r", b"\n\r", b"\ndata: b\n\n") == [message(b"a"), message(b"b")]


def test_lines_of_data_are_joined() -> None:
    assert read(b"data: a\ndata\ndata:  b\n\n") == [message(b"a\n\n b")]


def test_names_comments_and_unknown_fields_are_told_apart() -> None:
    assert read(b": keep-alive\n\nevent: endpoint\nfoo: bar\ndata: /x\n\ndata: y\n\n") == [
        Event("endpoint", b"/x", False),
        message(b"y"),
    ]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert read(b"\xef\xbb\xbfdata: a\n\n") == [message(b"a")]


def test_the_place_to_resume_from_is_the_last_event_that_came_whole() -> None:
    parser = EventParser(lambda: LIMIT)
    parser.feed(b"id: 1\ndata: a\n\nid: 2\ndata: half of")
    assert parser.last_id == "1"
    parser.restart()
    assert parser.feed(b"id: 2\ndata: whole\n\n") == [message(b"whole")]
    assert parser.last_id == "2"


def test_an_event_without_data_still_says_where_to_resume_from() -> None:
    parser = EventParser(lambda: LIMIT)
    assert parser.feed(b"id: 1\nretry: 250\ndata:\n\n") == []
    assert (parser.last_id, parser.retry) == ("1", 0.25)


def test_absurd_ids_and_pauses_are_left_alone() -> None:
    parser = EventParser(lambda: 100_000)
    parser.feed(b"id: good\n\n")
    parser.feed(b"id: bad\0id\nid: " + b"x" * 5000 + b"\nretry: soon\nretry: " + b"9" * 5000 + b"\nretry: -1\n\n")
    assert (parser.last_id, parser.retry) == ("good", None)
    parser.feed(b"retry: 999999999\n")
    assert parser.retry == 60


def test_the_limit_may_change_while_a_stream_is_read() -> None:
    limits = [LIMIT]
    parser = EventParser(lambda: limits[0])
    events = [b"data: " + b"x" * 500 + b"\n\n"] * 2
    assert not parser.feed(events[0])[0].cut
    limits[0] = 100
    assert parser.feed(events[1])[0].cut


def test_an_event_over_the_limit_leaves_its_two_ends_and_the_next_one_whole() -> None:
    head, tail = b'{"id":7,"result":"', b'"}'
    chunks = [b"data: " + head, *[b"x" * 1000] * 50, tail + b"\n", b"\ndata: next\n\n"]
    cut, after = read(*chunks, limit=5000)
    assert cut.cut
    assert cut.data.startswith(head) and cut.data.endswith(tail) and len(cut.data) < 2000
    assert after == message(b"next")


def test_an_event_over_the_limit_is_noticed_before_it_ends() -> None:
    parser = EventParser(lambda: LIMIT)
    parser.feed(b"data: " + b"x" * 2000)
    assert parser.overflowing
    parser.restart()
    assert not parser.overflowing


def test_endless_lines_of_no_data_have_a_bound_too() -> None:
    parser = EventParser(lambda: LIMIT)
    for _ in range(100):
        parser.feed(b"data:\n" * 100)
    assert parser.overflowing
    assert parser.feed(b"\ndata: next\n\n")[-1] == message(b"next")


@given(
    st.lists(st.sampled_from([b"data: a", b"data", b"id: 1", b"event: e", b"", b"\r", b": c", b"retry: 5"])).map(
        lambda lines: b"\n".join(lines) + b"\n\n"
    ),
    st.lists(st.integers(min_value=0, max_value=80)),
)
def test_it_does_not_matter_how_the_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    pieces = [stream[start:end] for start, end in itertools.pairwise(places)]
    assert read(*pieces) == read(stream)


@given(st.lists(st.binary(max_size=50)))
def test_no_stream_breaks_the_parser(chunks: list[bytes]) -> None:
    read(*chunks, limit=20)
