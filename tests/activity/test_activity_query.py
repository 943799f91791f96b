"""Queries: every filter of the contract, on records that are indexed and on records that are not yet."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from mcpproxy.activity.filters import BadFilter, Filter, parse_filter, parse_limit, parse_moment
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.query import Page, get_record, list_records
from mcpproxy.activity.record import Record, Stored, now
from mcpproxy.storage.engine import Storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Log = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


def names(page: Page) -> list[str | None]:
    return [record.tool_name for record in page.activities]


CASES: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["last", "search", "search", "delete", "first"]),
    ({"type": "policy_decision"}, ["delete"]),
    ({"type": "config_change"}, []),
    ({"status": "blocked"}, ["delete"]),
    ({"server": "github"}, ["search", "delete", "first"]),
    ({"tool": "search"}, ["search", "search"]),
    ({"tool": "github:search"}, ["search"]),
    ({"tool": "github:search", "server": "github"}, ["search"]),
    ({"tool": "github:search", "server": "files"}, []),
    ({"tool": "nowhere:search"}, []),
    ({"intent_type": "read"}, ["search", "search"]),
    ({"intent_type": "destructive"}, ["delete"]),
    ({"request_id": "r-2"}, ["delete"]),
    ({"session_id": "s-1"}, ["last", "first"]),
    ({"start_time": "2026-01-15T12:02:00Z"}, ["last", "search", "search"]),
    ({"end_time": "2026-01-15T12:02:00Z"}, ["delete", "first"]),
    ({"start_time": "2026-01-15T13:01:00+01:00", "end_time": "2026-01-15T12:02:00.000001"}, ["search", "delete"]),
    ({"q": "search"}, ["search", "search"]),
    ({"q": "TIMEOUT"}, ["last"]),
    ({"q": "timeout gateway"}, ["last"]),
    ({"q": "timeout nothing"}, []),
    ({"q": "clean*"}, ["delete"]),
    ({"q": "clean"}, []),
    ({"q": "search", "server": "files"}, ["search"]),
    ({"q": "search", "start_time": "2026-01-15T12:03:00Z"}, ["search"]),
    ({"intent_type": "read", "server": "github", "status": "success", "type": "tool_call"}, ["search"]),
]


@pytest.mark.anyio
async def test_each_filter_finds_what_it_says(log: Log, storage: Storage, call: Make) -> None:
    def at(minutes: int) -> datetime:
        return NOON + timedelta(minutes=minutes)

    records = (
        call("first", timestamp=at(0), session_id="s-1", request_id="r-1"),
        call(
            "delete",
            type="policy_decision",
            status="blocked",
            operation="destructive",
            reason="User asked for a cleanup",
            timestamp=at(1),
            request_id="r-2",
        ),
        call("search", operation="read", timestamp=at(2)),
        call("search", operation="read", server_name="files", timestamp=at(3)),
        call(
            "last", server_name=None, status="error", error_message="Gateway timeout", timestamp=at(4), session_id="s-1"
        ),
    )
    async with log(*records):
        for given, found in CASES:
            page = list_records(storage, parse_filter(given))
            assert (given, names(page)) == (given, found)
            assert (given, page.total, page.total_exact) == (given, len(found), True)
            assert page.next_cursor is None


@pytest.mark.anyio
async def test_a_record_reads_back_as_it_was_written(log: Log, storage: Storage, call: Make) -> None:
    record = call(
        reason="A reason",
        arguments=b'{"big":1e400,"a":0.10,"a":"\\ud83d\\u0000"}',
        error_message="an error",
        request_id="r",
        session_id="s",
        client_name="c",
        duration_ms=0.1,
    )
    async with log(record):
        found = get_record(storage, record.id)
        assert get_record(storage, "01ARZ3NDEKTSV4RRFFQ69G5FAV") is None
    assert isinstance(found, Stored)
    for name in Record.__struct_fields__:
        if name not in {"arguments", "response", "metadata"}:
            assert getattr(found, name) == getattr(record, name)
    assert bytes(found.arguments) == bytes(record.arguments)
    assert bytes(found.metadata) == (
        b'{"intent":{"operation_type":"write","reason":"A reason"},"tool_variant":"call_tool_write"}'
    )


@pytest.mark.anyio
async def test_a_megabyte_is_kept_whole_where_the_settings_say_so(
    running: Running, storage: Storage, call: Make
) -> None:
    from mcpproxy.config.models import Activity

    text = b'"' + "\\u0000é".encode() * 131_072 + b'"'
    record = call(response=text)
    async with running(lambda: Activity(max_payload_bytes=2_000_000)) as journal:
        await journal.write(record)
    found = get_record(storage, record.id)
    assert found is not None
    assert bytes(found.response) == text


@pytest.mark.anyio
async def test_pages_neither_repeat_nor_skip_while_records_arrive(log: Log, storage: Storage, call: Make) -> None:
    # Several at the same microsecond, so that the order among them matters too.
    old = [call(f"old_{n}", timestamp=NOON + timedelta(microseconds=n // 3)) for n in range(20)]
    async with log(*old) as journal:
        seen: list[str | None] = []
        cursor = None
        while True:
            page = list_records(storage, Filter(), limit=3, cursor=cursor)
            seen += names(page)
            await journal.write(call("new"))
            if cursor is None:
                await journal.run(lambda writer: writer.ledger.digest(10_000))
            cursor = page.next_cursor
            if cursor is None:
                break
    assert seen == [f"old_{n}" for n in reversed(range(20))]


@pytest.mark.anyio
async def test_pages_of_a_text_query_neither_repeat_nor_skip(log: Log, storage: Storage, call: Make) -> None:
    # Recorded in another order than they began in, as calls of different length are.
    async with log(*(call(f"tool_{n}", reason="same", timestamp=NOON - timedelta(seconds=n)) for n in range(10))):
        seen: list[str | None] = []
        cursor = None
        for _ in range(4):
            page = list_records(storage, Filter(q="same"), limit=3, cursor=cursor)
            seen += names(page)
            cursor = page.next_cursor
    assert cursor is None
    assert seen == [f"tool_{n}" for n in reversed(range(10))]


@pytest.mark.anyio
async def test_a_total_is_exact_by_name_and_bounded_where_rows_must_be_counted(
    running: Running, storage: Storage, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.lookup.MOST_COUNTED", 5)
    monkeypatch.setattr("mcpproxy.activity.lookup.MOST_CHECKED", 5)
    monkeypatch.setattr("mcpproxy.activity.lookup._FEW", 1)
    async with running() as journal:
        await journal.write(*(call(reason="same", session_id="s", timestamp=NOON) for _ in range(8)))
        await journal.run(lambda writer: writer.ledger.digest(10_000))
        for exact in (Filter(), Filter(status="success", server="github"), Filter(tool="github:create_issue")):
            page = list_records(storage, exact, limit=1)
            assert (page.total, page.total_exact) == (8, True)
        for bounded in (
            Filter(session_id="s"),
            Filter(session_id="s", status="success"),
            Filter(q="same"),
            Filter(q="same", status="success"),
            Filter(start_time=NOON),
        ):
            page = list_records(storage, bounded, limit=1)
            assert (page.total, page.total_exact) == (5, False)
        page = list_records(storage, Filter(session_id="other", status="success"), limit=1)
        assert (page.total, page.total_exact) == (0, True)


@pytest.mark.anyio
async def test_no_text_query_is_an_error(log: Log, storage: Storage, call: Make) -> None:
    async with log(call()):
        for query in ('"', "a AND (", "NOT", "x:*&|!", "col:a", "'; DROP TABLE activity; --", "*", "\0", "%", "\ud83d"):
            assert list_records(storage, Filter(q=query)).activities == []


def test_a_bad_filter_names_the_field_the_value_and_what_is_allowed() -> None:
    for given, words in (
        ({"type": "tool"}, "type: 'tool' is not allowed; give one of tool_call, internal_tool_call"),
        ({"status": "ok"}, "status: 'ok' is not allowed; give one of success, error, blocked"),
        ({"intent_type": "Read"}, "intent_type: 'Read' is not allowed; give one of read, write, destructive"),
        ({"start_time": "yesterday"}, "start_time: 'yesterday' is not allowed; give an RFC 3339 time"),
        ({"end_time": "2026-13-01"}, "end_time: '2026-13-01"),
        ({"colour": "red"}, "filter: 'colour' is not allowed; give one of type, status"),
        ({"q": "x" * 1001}, "at most 1000 characters"),
    ):
        with pytest.raises(BadFilter) as caught:
            parse_filter(given)
        assert words in str(caught.value)


@pytest.mark.parametrize("limit", ["0", "1001", "-5", "ten", "5.5"])
def test_a_limit_out_of_range_is_refused(limit: str) -> None:
    with pytest.raises(BadFilter, match="a whole number from 1 to 1000"):
        parse_limit(limit)


def test_limits_within_range_and_their_default() -> None:
    assert [parse_limit(value) for value in (None, "", "1", 1000)] == [50, 50, 1, 1000]


def test_a_foreign_cursor_is_refused(storage: Storage) -> None:
    for cursor in ("abc", "1", "1-2-3", "-1-2", "9" * 40 + "-1"):
        with pytest.raises(BadFilter, match="next_cursor"):
            list_records(storage, Filter(), cursor=cursor)


def test_moments_may_be_times_dates_or_ages() -> None:
    assert parse_moment("start_time", "2026-01-15") == datetime(2026, 1, 15, tzinfo=UTC)
    assert parse_moment("start_time", "2026-01-15T10:00:00+02:00") == datetime(2026, 1, 15, 8, tzinfo=UTC)
    assert abs(now() - timedelta(hours=24) - parse_moment("start_time", "24h")) < timedelta(minutes=1)


def test_empty_filters_are_no_filters() -> None:
    assert parse_filter({"type": "", "q": None}) == Filter()


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "asked",
    [
        Filter(),
        Filter(type="tool_call"),
        Filter(status="error"),
        Filter(server="github"),
        Filter(tool="create_issue"),
        Filter(tool="github:create_issue"),
        Filter(intent_type="write"),
        Filter(request_id="r"),
        Filter(session_id="s"),
        Filter(start_time=NOON, end_time=NOON + timedelta(days=900)),
        Filter(q="issue"),
        Filter(q="issue", status="success"),
        Filter(type="tool_call", status="success", server="github", start_time=NOON),
    ],
    ids=lambda asked: ",".join(name for name in Filter.__struct_fields__ if getattr(asked, name)) or "none",
)
async def test_no_filter_scans_or_sorts_the_log(
    asked: Filter, running: Running, storage: Storage, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.lookup._FEW", 1)
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, statement: str, values: Any, _context: Any, _many: bool) -> None:
        if statement.startswith("SELECT"):
            driver = connection.connection.driver_connection
            plans.extend(row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}", values))

    async with running() as journal:
        await journal.write(*(call(reason="x" * n, session_id="s", request_id="r") for n in range(1200)))
        await journal.run(lambda writer: writer.ledger.digest(10_000))
        event.listen(storage.engine, "before_cursor_execute", explain)
        for cursor in (None, "9999999999999999-1200"):
            found = list_records(storage, asked, limit=10, cursor=cursor).activities
            assert len(found) == (0 if asked.status == "error" else 10)
    scans = {plan for plan in plans if "SCAN" in plan and "VIRTUAL TABLE INDEX" not in plan}
    scans -= {"SCAN CONSTANT ROW", *(plan for plan in scans if plan.startswith(("SCAN anon_", "SCAN activity_counts")))}
    # Without any filter the newest page is the end of the time index, read in order.
    in_order = {"SCAN activity_index USING COVERING INDEX ix_activity_timestamp"}
    assert scans == (in_order if asked == Filter() else set())
    assert "USE TEMP B-TREE FOR ORDER BY" not in plans


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_the_rarer_of_two_values_chooses_the_index(running: Running, storage: Storage, call: Make) -> None:
    statements: list[str] = []
    async with running() as journal:
        await journal.write(*(call() for _ in range(50)), call(status="blocked"))
        await journal.run(lambda writer: writer.ledger.digest(10_000))
        event.listen(
            storage.engine, "before_cursor_execute", lambda _c, _k, statement, *_: statements.append(statement)
        )
        assert list_records(storage, Filter(type="tool_call", status="blocked")).total == 1
    (page,) = [each for each in statements if "+activity_index" in each]
    assert "+activity_index.type = ?" in page
    assert "activity_index.status = ?" in page


@pytest.mark.anyio
async def test_queries_run_beside_writers(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:

        async def write() -> None:
            for _ in range(60):
                await journal.write(call())

        async def look() -> None:
            for _ in range(15):
                page = await asyncio.to_thread(list_records, storage, Filter(status="success"))
                positions = [record.position for record in page.activities]
                # Digested and newer records are seen at one moment: no gap between them, nothing twice.
                assert positions == list(range(page.total, max(0, page.total - 50), -1))

        await asyncio.gather(write(), look())
