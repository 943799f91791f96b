"""The summary: exact to the microsecond at both ends, however much of it was counted before."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from sqlalchemy import func, select

from mcpproxy.activity.filters import BadFilter, Filter
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.query import list_records
from mcpproxy.activity.record import Record
from mcpproxy.activity.retention import step_remover
from mcpproxy.activity.summary import PERIODS, ToolCount, _parts, summarize
from mcpproxy.activity.tables import activity_counts
from mcpproxy.storage.engine import Storage

Log = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]

AT = datetime(2026, 1, 15, 12, 34, 56, 789, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TICK = timedelta(microseconds=1)


@pytest.mark.anyio
async def test_a_summary_counts_by_kind(log: Log, storage: Storage, call: Make) -> None:
    records = (
        call("create", timestamp=AT - HOUR / 2),
        call("create", timestamp=AT - 3 * HOUR),
        call("search", server_name="files", operation="read", status="error", timestamp=AT - 3 * HOUR),
        call("create", type="policy_decision", status="blocked", timestamp=AT - 4 * HOUR),
        call("retrieve_tools", type="internal_tool_call", server_name=None, operation=None, timestamp=AT - HOUR),
        call("old", timestamp=AT - 25 * HOUR),
    )
    async with log(*records):
        summary = summarize(storage, "24h", AT)
    assert summary.period == "24h"
    assert summary.total == 5
    assert summary.by_type == {"tool_call": 3, "policy_decision": 1, "internal_tool_call": 1}
    assert summary.by_status == {"success": 3, "error": 1, "blocked": 1}
    assert summary.by_intent == {"write": 3, "read": 1}
    assert summary.by_server == {"github": 3, "files": 1}
    assert summary.top_tools == [ToolCount("github", "create", 2), ToolCount("files", "search", 1)]


@pytest.mark.anyio
@pytest.mark.parametrize(("period", "length"), [("1h", HOUR), ("24h", DAY), ("7d", 7 * DAY), ("30d", 30 * DAY)])
async def test_a_period_begins_and_ends_to_the_microsecond(
    period: str, length: timedelta, log: Log, storage: Storage, call: Make
) -> None:
    inside = [AT - length, AT - length + TICK, AT - length / 2, AT - length / 3, AT - length / 9, AT - TICK]
    outside = [AT - length - TICK, AT - 2 * length, AT, AT + HOUR]
    async with log(*(call(timestamp=moment) for moment in inside + outside)):
        assert summarize(storage, period, AT).total == len(inside)


def test_the_parts_of_a_period_join_without_gap_or_overlap() -> None:
    for start in (0, 1, 3_599_999_999, 3_600_000_000, 86_399_999_999, 86_400_000_000):
        for length in (1, *PERIODS.values()):
            parts = list(_parts(start, start + length))
            assert parts[0][1] == start
            assert parts[-1][2] == start + length
            assert all(one[2] == two[1] for one, two in pairwise(parts))
            assert all(span == 0 or (first % span, last % span) == (0, 0) for span, first, last in parts)


@pytest.mark.anyio
async def test_counts_go_with_the_records_that_retention_takes(log: Log, storage: Storage, call: Make) -> None:
    async with log(*(call(f"tool_{n % 3}", timestamp=AT - HOUR) for n in range(30))) as journal:
        await journal.run(lambda writer: writer.ledger.digest(1000))
        await journal.run(step_remover(upto=12))
        assert summarize(storage, "24h", AT).total == 18
        assert list_records(storage, Filter(tool="tool_0")).total == 6
        await journal.run(step_remover(upto=30))
        with storage.read() as connection:
            assert connection.execute(select(func.sum(activity_counts.c.count))).scalar() == 0


def test_an_unknown_period_is_refused(storage: Storage) -> None:
    with pytest.raises(BadFilter, match="period: '2h' is not allowed; give one of 1h, 24h, 7d, 30d"):
        summarize(storage, "2h")
