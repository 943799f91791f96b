"""Calls over time and slow tools, on both databases, indexed or not."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

import pytest

from mcpproxy.activity.journal import Journal
from mcpproxy.activity.pace import Pacer, slowest
from mcpproxy.activity.record import Record
from mcpproxy.storage.engine import Storage

Log = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]

AT = datetime(2026, 1, 15, 12, 34, 56, 789, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.anyio
async def test_calls_are_counted_per_step_by_intent(log: Log, storage: Storage, call: Make) -> None:
    records = (
        call(operation="read", timestamp=AT),
        call(operation="read", timestamp=AT - 4 * MINUTE),
        call(operation="destructive", timestamp=AT - 5 * MINUTE, status="blocked"),
        call(operation=None, timestamp=AT - 60 * MINUTE),
        call(operation="read", timestamp=AT - 25 * 60 * MINUTE),
        call(type="policy_decision", timestamp=AT),
        call("retrieve_tools", type="internal_tool_call", timestamp=AT),
    )
    async with log(*records):
        found = Pacer(storage).look(AT)
    assert found.start == datetime(2026, 1, 14, 12, 40, tzinfo=UTC)
    steps = {intent: {place: n for place, n in enumerate(row) if n} for intent, row in found.by_intent.items()}
    assert steps == {"read": {143: 2}, "destructive": {142: 1}, "": {137: 1}}
    assert all(len(counts) == 144 for counts in found.by_intent.values())
    assert found.by_status == {"success": 3, "blocked": 1}
    assert found.total == 4


@pytest.mark.anyio
async def test_a_call_that_ends_late_is_counted_where_it_began(log: Log, storage: Storage, call: Make) -> None:
    pacer = Pacer(storage)
    async with log(call(timestamp=AT - 20 * 60 * MINUTE), call(timestamp=AT - 30 * MINUTE)) as journal:
        assert pacer.look(AT).total == 2
        await journal.write(call(timestamp=AT - 29 * MINUTE))
        await journal.write(call(timestamp=AT + 5 * MINUTE))
        later = pacer.look(AT + 10 * MINUTE)
    assert [count for count in later.by_intent["write"] if count] == [1, 2, 1]
    assert later.total == 4
    assert pacer.look(AT + 23 * 60 * MINUTE).total == 3


@pytest.mark.anyio
async def test_the_slowest_tool_comes_first_and_refused_calls_do_not_count(
    log: Log, storage: Storage, call: Make
) -> None:
    records = (
        *(call("quick", duration_ms=float(n), timestamp=AT - MINUTE) for n in range(1, 101)),
        call("slow", duration_ms=900.0, status="error", timestamp=AT - MINUTE),
        call("refused", duration_ms=5000.0, status="blocked", timestamp=AT - MINUTE),
        call("yesterday", duration_ms=5000.0, timestamp=AT - 25 * 60 * MINUTE),
    )
    async with log(*records):
        found = slowest(storage, AT)
    assert [(slow.tool, slow.calls, slow.median, slow.p95) for slow in found] == [
        ("slow", 1, 900.0, 900.0),
        ("quick", 100, 50.0, 95.0),
    ]


def test_nothing_happened_is_a_flat_line(storage: Storage) -> None:
    assert Pacer(storage).look(AT).by_intent == {}
    assert slowest(storage, AT) == []
