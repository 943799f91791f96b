"""The journal: what it acknowledged is in the database, whatever happens next."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import func, select

from mcpproxy.activity.journal import MOST_WAITING, Journal, RecordFailed
from mcpproxy.activity.record import Record
from mcpproxy.activity.tables import activity, activity_index, activity_open_calls
from mcpproxy.config.mask import Masker
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]


def rows(storage: Storage) -> list[dict[str, Any]]:
    with storage.read() as connection:
        return [dict(row) for row in connection.execute(select(activity).order_by(activity.c.seq)).mappings()]


def open_ids(storage: Storage) -> list[str]:
    with storage.read() as connection:
        return list(connection.execute(select(activity_open_calls.c.id)).scalars())


@pytest.mark.anyio
async def test_a_record_is_in_the_database_when_write_returns(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:
        record = call(reason="Reported by a user")
        await journal.write(record)
        (row,) = rows(storage)
    assert row["id"] == record.id
    assert row["arguments"] == '{"title":"Bug"}'
    assert row["intent_type"] == "write"
    assert row["position"] == 1


@pytest.mark.anyio
async def test_callers_at_the_same_moment_share_a_commit_and_all_are_kept(
    running: Running, storage: Storage, call: Make
) -> None:
    async with running() as journal:
        records = [call(f"tool_{n}") for n in range(500)]
        await asyncio.gather(*(journal.write(record) for record in records))
        assert journal.stats().written == 500
    stored = rows(storage)
    assert {row["id"] for row in stored} == {record.id for record in records}
    assert [row["position"] for row in stored] == list(range(1, 501))


@pytest.mark.anyio
async def test_the_records_of_one_call_are_written_together(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:
        await journal.write(call(status="blocked"), call(type="policy_decision", status="blocked"))
    assert [row["type"] for row in rows(storage)] == ["tool_call", "policy_decision"]


@pytest.mark.anyio
async def test_an_opened_call_is_noted_before_it_is_made_and_recorded_once_when_closed(
    running: Running, storage: Storage, call: Make
) -> None:
    async with running() as journal:
        opened = call("delete_repo", operation="destructive", status="interrupted")
        await journal.open_call(opened)
        assert (open_ids(storage), rows(storage)) == ([opened.id], [])
        await journal.close_call(structs.replace(opened, status="success", duration_ms=3.25))
        assert open_ids(storage) == []
    (row,) = rows(storage)
    assert (row["id"], row["status"], row["duration_ms"]) == (opened.id, "success", 3.25)


@pytest.mark.anyio
async def test_a_call_left_open_at_stop_is_recorded_as_interrupted(
    running: Running, storage: Storage, call: Make
) -> None:
    async with running() as journal:
        opened = call("delete_repo", operation="destructive")
        await journal.open_call(opened)
    (row,) = rows(storage)
    assert (row["id"], row["status"]) == (opened.id, "interrupted")
    assert "may have executed it" in row["error_message"]
    assert open_ids(storage) == []


@pytest.mark.anyio
async def test_a_cancelled_caller_does_not_take_its_record_along(
    running: Running, storage: Storage, call: Make
) -> None:
    # Durable against a power cut, it is written by the thread, and there is a moment to be cancelled in.
    async with running(lambda: Activity(durability="power")) as journal:
        task = asyncio.create_task(journal.write(call()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(rows(storage)) == 1


@pytest.mark.anyio
async def test_a_record_that_cannot_be_written_fails_alone(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:
        bad = structs.replace(call(), timestamp="no time")
        results = await asyncio.gather(
            journal.write(call("one")), journal.write(bad), journal.write(call("two")), return_exceptions=True
        )
    assert [type(result) for result in results] == [type(None), RecordFailed, type(None)]
    assert {row["tool_name"] for row in rows(storage)} == {"one", "two"}
    assert [row["position"] for row in rows(storage)] == [1, 2]


@pytest.mark.anyio
async def test_a_full_queue_is_a_clear_error(running: Running, call: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpproxy.activity.journal.MOST_WAITING", 3)
    assert MOST_WAITING > 3
    async with running(lambda: Activity(durability="power")) as journal:
        results = await asyncio.gather(*(journal.write(call()) for _ in range(5)), return_exceptions=True)
        failures = [result for result in results if result is not None]
        assert len(failures) == 2
        assert "3 records wait to be written already; try again" in str(failures[0])
        await journal.write(call())


@pytest.mark.anyio
async def test_after_stop_nothing_is_taken_any_more(running: Running, call: Make) -> None:
    async with running() as journal:
        pass
    with pytest.raises(RecordFailed, match="closed"):
        await journal.write(call())


@pytest.mark.anyio
async def test_a_quiet_moment_indexes_what_was_written(running: Running, storage: Storage, call: Make) -> None:
    def indexed() -> int:
        with storage.read() as connection:
            return int(connection.execute(select(func.count()).select_from(activity_index)).scalar_one())

    async with running() as journal:
        await journal.write(*(call() for _ in range(30)))
        for _ in range(200):
            if indexed() == 30:
                break
            await asyncio.sleep(0.02)
        assert indexed() == 30
        head = journal.stats().head
        assert head is not None
        assert head.position == 30


@pytest.mark.anyio
async def test_settings_are_read_at_every_commit(running: Running, storage: Storage, call: Make) -> None:
    settings = [Activity(max_payload_bytes=10)]
    async with running(lambda: settings[0]) as journal:
        await journal.write(call(arguments=b'{"long":"123456789"}'))
        settings[0] = Activity(max_payload_bytes=100, durability="power")
        await journal.write(call(arguments=b'{"long":"123456789"}'))
    first, second = (row["arguments"] for row in rows(storage))
    assert first == '{"truncated":true,"original_bytes":20,"beginning":"{\\"long\\":\\"1"}'
    assert second == '{"long":"123456789"}'


@pytest.mark.anyio
async def test_secrets_are_masked_in_every_text(running: Running, storage: Storage, call: Make) -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "***")

    async with running(mask=mask) as journal:
        await journal.write(
            call(
                "tool_hunter2",
                reason="because hunter2",
                arguments=b'{"password":"hunter2"}',
                response=b'{"echo":"hunter2"}',
                error_message="failed with hunter2",
                session_id="hunter2",
                client_name="hunter2",
                request_id="hunter2",
            )
        )
    (row,) = rows(storage)
    assert "hunter2" not in str(row)
    assert row["arguments"] == '{"password":"***"}'


@pytest.mark.anyio
async def test_the_configurations_masker_hides_secrets_however_they_are_written(
    running: Running, storage: Storage, call: Make
) -> None:
    masker = Masker()
    masker.learn("server:github", ['p"ss wörd/1'])
    async with running(mask=masker.mask) as journal:
        await journal.write(
            call(
                arguments=b'{"password":"p\\"ss w\\u00f6rd/1"}',
                error_message='401 for p"ss wörd/1',
                reason='p"ss wörd/1',
            )
        )
    (row,) = rows(storage)
    assert row["arguments"] == '{"password":"***"}'
    assert row["error_message"] == "401 for ***"
    assert "ss w" not in row["metadata"] + row["search"]


@pytest.mark.anyio
async def test_the_head_is_said_in_the_log(running: Running, call: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running() as journal:
        await journal.write(call())
    head = journal.stats().head
    assert head is not None
    assert f"activity chain {head.writer} goes to position 1 with hash {head.hash.hex()}" in caplog.text


@pytest.mark.anyio
async def test_nobody_waits_for_ever_if_the_writer_ends(
    running: Running, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as journal:
        monkeypatch.setattr(journal._writer, "serve_now", lambda _batch: False)
        monkeypatch.setattr(journal._writer, "_serve", lambda _batch: 1 / 0)
        monkeypatch.setattr("mcpproxy.activity.writer.MOST_JOBS_PER_COMMIT", 1)
        results = await asyncio.gather(
            *(asyncio.wait_for(journal.write(call()), 5) for _ in range(3)), return_exceptions=True
        )
        assert [type(result) for result in results] == [RecordFailed] * 3
        with pytest.raises(RecordFailed, match="closed"):
            await journal.run(lambda _writer: None)


@pytest.mark.anyio
async def test_two_writers_on_one_database_have_a_chain_each(
    running: Running, storage: Storage, call: Make, tmp_path: Path
) -> None:
    async with running() as one, running() as two:
        await asyncio.gather(*(journal.write(call()) for journal in (one, two) for _ in range(20)))
    chains: dict[str, list[int]] = {}
    for row in rows(storage):
        chains.setdefault(row["writer"], []).append(row["position"])
    assert list(chains.values()) == [list(range(1, 21))] * 2


@pytest.mark.anyio
async def test_a_living_writers_open_calls_are_left_alone(running: Running, storage: Storage, call: Make) -> None:
    async with running() as one:
        opened = call("delete_repo", operation="destructive")
        await one.open_call(opened)
        async with running() as two:
            await two.write(call())
            assert open_ids(storage) == [opened.id]
        await one.close_call(opened)
    assert sorted(row["tool_name"] for row in rows(storage)) == ["create_issue", "delete_repo"]
