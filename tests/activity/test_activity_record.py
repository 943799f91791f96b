"""Records: their ids, their times, and how they read as JSON."""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec import Raw
from ulid import ULID

from mcpproxy.activity.record import Record, decoded, from_micros, new_id, to_micros

CONTRACT_FIELDS = (
    "id type source server_name tool_name status error_message arguments response duration_ms timestamp "
    "request_id session_id client_name metadata"
)


def test_a_record_has_the_fields_of_the_contract_in_their_order() -> None:
    assert " ".join(Record.__struct_fields__) == CONTRACT_FIELDS


def test_ids_are_ulids_that_sort_as_they_were_made() -> None:
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert ULID.from_str(ids[0]).milliseconds <= ULID.from_str(ids[-1]).milliseconds


def test_ids_keep_their_order_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
    assert new_id() > before


def test_times_are_kept_to_the_microsecond_and_shown_in_utc(call: Callable[..., Record]) -> None:
    moment = datetime(2026, 1, 15, 10, 30, 0, 123456, tzinfo=UTC)
    assert from_micros(to_micros(moment)) == moment
    assert b'"timestamp":"2026-01-15T10:30:00.123456Z"' in msgspec.json.encode(call(timestamp=moment))


@pytest.mark.parametrize("text", ['{"a":"\\ud83d"}', '{"a":1e400}', "[" * 900 + "]" * 900, '{"a":"\\u0000"}'])
def test_payloads_that_a_strict_decoder_refuses_can_still_be_read(text: str) -> None:
    assert decoded(Raw(text.encode())) is not None
