"""Following: every new record once, from any point on, whoever wrote it and however slow the reader."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

import pytest

from mcpproxy.activity.filters import BadFilter
from mcpproxy.activity.follow import Feed, Skipped
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record, Stored
from mcpproxy.activity.retention import step_remover
from mcpproxy.storage.engine import Storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]


async def take(stream: AsyncIterator[Any], count: int) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            item = await anext(stream)
            found.append("skipped" if isinstance(item, Skipped) else item.id)
    return found


async def begun(feed: Feed, stream: AsyncIterator[Stored | Skipped]) -> "asyncio.Task[Stored | Skipped]":
    """The first record to come, asked for; returns when the stream is listening."""
    task = asyncio.ensure_future(anext(stream))
    while feed._followers == 0 or feed._task is None:
        await asyncio.sleep(0.001)
    return task


@pytest.mark.anyio
async def test_a_follower_gets_what_is_written_from_now_on(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:
        await journal.write(call("before"))
        feed = Feed(storage, journal)
        async with aclosing(feed.follow()) as stream:
            first = await begun(feed, stream)
            records = [call(f"tool_{n}") for n in range(350)]
            for record in records[:50]:
                await journal.write(record)
            await journal.write(*records[50:])
            got = await first
            assert isinstance(got, Stored)
            assert [got.id, *await take(stream, 349)] == [record.id for record in records]


@pytest.mark.anyio
async def test_a_follower_resumes_after_any_record_without_gap_or_repeat(
    running: Running, storage: Storage, call: Make
) -> None:
    async with running() as journal:
        records = [call(f"tool_{n}") for n in range(450)]
        await journal.write(*records[:400])
        feed = Feed(storage, journal)
        for start in (0, 150, 399):
            async with aclosing(feed.follow(records[start].id)) as stream:
                task = asyncio.create_task(take(stream, 399 - start + 10))
                await asyncio.sleep(0.01)
                extra = [call("live") for _ in range(10)]
                for record in extra:
                    await journal.write(record)
                expected = [record.id for record in records[start + 1 : 400]]
                found = await task
            assert found[: len(expected)] == expected
            assert len(set(found)) == len(found)
            records[400:] = []
            records.extend(extra)


@pytest.mark.anyio
async def test_a_slow_follower_misses_nothing_and_holds_up_nobody(
    running: Running, storage: Storage, call: Make
) -> None:
    async with running() as journal:
        feed = Feed(storage, journal)
        async with aclosing(feed.follow()) as slow, aclosing(feed.follow()) as quick:
            first_slow, first_quick = await begun(feed, slow), await begun(feed, quick)
            while feed._followers < 2:
                await asyncio.sleep(0.001)
            records = [call(f"tool_{n}") for n in range(700)]
            await journal.write(*records)
            ids = [record.id for record in records]
            assert [(await first_quick).id, *await take(quick, 699)] == ids  # type: ignore[union-attr]
            assert len(feed._recent) <= 200
            assert [(await first_slow).id, *await take(slow, 699)] == ids  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_records_of_other_processes_are_seen(
    running: Running, storage: Storage, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.follow.POLL_SECONDS", 0.02)
    async with running() as mine, running() as others:
        feed = Feed(storage, mine)
        async with aclosing(feed.follow()) as stream:
            first = await begun(feed, stream)
            record = call()
            await others.write(record)
            async with asyncio.timeout(20):
                assert (await first).id == record.id  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_a_follower_whose_place_was_pruned_is_told_and_goes_on(
    running: Running, storage: Storage, call: Make
) -> None:
    async with running() as journal:
        records = [call(f"tool_{n}") for n in range(10)]
        for record in records:
            await journal.write(record)
            await asyncio.sleep(0.002)
        await journal.run(lambda writer: writer.ledger.digest(100))
        await journal.run(step_remover(upto=5))
        feed = Feed(storage, journal)
        async with aclosing(feed.follow(records[2].id)) as stream:
            assert await take(stream, 6) == ["skipped", *(record.id for record in records[5:])]
        async with aclosing(feed.follow("01ARZ3NDEKTSV4RRFFQ69G5FAV")) as stream:
            assert await take(stream, 2) == ["skipped", records[5].id]


@pytest.mark.anyio
async def test_a_place_that_is_no_id_is_refused(storage: Storage) -> None:
    async with aclosing(Feed(storage).follow("nonsense")) as stream:
        with pytest.raises(BadFilter, match="Last-Event-ID: 'nonsense' is not allowed"):
            await anext(stream)


@pytest.mark.anyio
async def test_nothing_is_watched_when_nobody_follows(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:
        feed = Feed(storage, journal)
        for _ in range(2):
            async with aclosing(feed.follow()) as stream:
                first = await begun(feed, stream)
                await journal.write(call())
                await first
            assert feed._task is None
            assert journal._listeners == []


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_a_follower_outlives_an_outage_of_the_database(
    running: Running, storage: Storage, data_dir: Path, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.follow.POLL_SECONDS", 0.02)
    async with running() as journal:
        feed = Feed(storage, journal)
        async with aclosing(feed.follow()) as stream:
            first = await begun(feed, stream)
            (data_dir / "mcpproxy.db").rename(data_dir / "away")
            storage.engine.dispose()
            await asyncio.sleep(0.1)
            (data_dir / "away").rename(data_dir / "mcpproxy.db")
            record = call()
            await journal.write(record)
            async with asyncio.timeout(20):
                assert (await first).id == record.id  # type: ignore[union-attr]
