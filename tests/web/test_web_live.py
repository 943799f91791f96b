"""Which new records belong on a page that is filtered?"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import Raw
from msgspec.json import encode

from mcpproxy.activity.filters import Filter
from mcpproxy.activity.record import Stored
from mcpproxy.web.live import MOST_ROWS, _event, _News, passes

AT = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


def record(**more: Any) -> Stored:
    fields: dict[str, Any] = {
        "type": "tool_call",
        "source": "mcp",
        "status": "error",
        "server_name": "github",
        "tool_name": "createIssue",
        "error_message": "The label does not exist",
        "timestamp": AT,
        "request_id": "r1",
        "session_id": "s1",
        "metadata": Raw(encode({"intent": {"operation_type": "write", "reason": "the user asked"}})),
        "writer": "w",
        "position": 1,
        "prev_hash": "00",
        "hash": "00",
    }
    return Stored(**(fields | more))


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(),
        Filter(type="tool_call", status="error", server="github", intent_type="write"),
        Filter(tool="createIssue", request_id="r1", session_id="s1"),
        Filter(tool="github:createIssue"),
        Filter(start_time=AT, end_time=AT + timedelta(seconds=1)),
        Filter(q="label issue ask*"),
        Filter(q="createissue"),
    ],
)
def test_a_record_that_the_list_would_show_is_shown(wanted: Filter) -> None:
    assert passes(wanted, record())


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(type="policy_decision"),
        Filter(status="success"),
        Filter(server="gitlab"),
        Filter(intent_type="read"),
        Filter(tool="gitlab:createIssue"),
        Filter(tool="gitlab:createIssue", server="github"),
        Filter(start_time=AT + timedelta(seconds=1)),
        Filter(end_time=AT),
        Filter(q="label missing"),
        Filter(q="labe"),
        Filter(q="!!"),
    ],
)
def test_a_record_that_the_list_would_not_show_is_not_shown(wanted: Filter) -> None:
    assert not passes(wanted, record())


def test_a_flood_keeps_the_newest_and_counts_the_rest() -> None:
    news = _News()
    for number in range(MOST_ROWS + 7):
        news.add(record(id=str(number)), Filter())
    assert news.rows[0].id == "7"
    assert (len(news.rows), news.left_out) == (MOST_ROWS, 7)


def test_no_text_can_end_an_event() -> None:
    event = _event("rows", "<td>a\r\nevent: forged\n\ndata: x</td>".splitlines(), "ID").decode()
    assert event == "id: ID\nevent: rows\ndata: <td>a\ndata: event: forged\ndata: \ndata: data: x</td>\n\n"
