"""Retention: the oldest go, by age, number and size, and what is left still verifies."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from mcpproxy.activity.chain import public_key_in
from mcpproxy.activity.filters import Filter
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.query import list_records
from mcpproxy.activity.record import Record, now
from mcpproxy.activity.retention import Retention
from mcpproxy.activity.tables import activity, activity_counts, activity_index
from mcpproxy.activity.verify import verify
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import StorageLocked

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]


def counted(storage: Storage) -> list[int]:
    with storage.read() as connection:
        return [
            int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for table in (activity, activity_index)
        ]


async def digest(journal: Journal) -> None:
    await journal.run(lambda writer: writer.ledger.digest(100_000))


@pytest.mark.anyio
async def test_old_records_go(running: Running, storage: Storage, data_dir: Path, call: Make) -> None:
    async with running() as journal:
        ages = [40, 35, 31, 29, 5, 0]
        for age in ages:
            await journal.write(call(f"age_{age}", reason="same", timestamp=now() - timedelta(days=age)))
        await digest(journal)
        removed = await Retention(storage, journal, lambda: Activity(retention_days=30)).prune()
    assert removed == 3
    assert [record.tool_name for record in list_records(storage, Filter()).activities] == ["age_0", "age_5", "age_29"]
    assert list_records(storage, Filter(q="same")).total == 3
    assert list_records(storage, Filter(q="31")).total == 0
    assert verify(storage, public_key_in(data_dir)).ok


@pytest.mark.anyio
async def test_records_beyond_the_number_go_oldest_first_in_small_steps(
    running: Running, storage: Storage, data_dir: Path, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.retention.ROWS_PER_STEP", 7)
    monkeypatch.setattr("mcpproxy.activity.retention.PAUSE_SECONDS", 0)
    async with running() as journal:
        await journal.write(*(call(f"tool_{n}") for n in range(100)))
        await digest(journal)
        assert await Retention(storage, journal, lambda: Activity(max_records=40)).prune() == 60
        assert await Retention(storage, journal, lambda: Activity(max_records=40)).prune() == 0
    assert counted(storage) == [40, 40]
    assert list_records(storage, Filter(), limit=100).activities[-1].tool_name == "tool_60"
    assert verify(storage, public_key_in(data_dir)).ok
    with storage.read() as connection:
        assert connection.execute(select(func.min(activity_counts.c.count))).scalar() == 1


@pytest.mark.anyio
async def test_records_beyond_the_size_go_and_no_more_the_next_time(
    running: Running, storage: Storage, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.retention.PAUSE_SECONDS", 0)
    monkeypatch.setattr("mcpproxy.activity.retention._SPARE_PAGES", 10)
    # No compressor makes less of it, so it counts in full on both databases.
    noise = random.Random(1).randbytes(10_000).hex()
    async with running() as journal:
        for n in range(150):
            await journal.write(call(f"tool_{n}", response=f'"{noise}"'.encode()))
        await digest(journal)
        retention = Retention(storage, journal, lambda: Activity(max_size_mb=2))
        removed = await retention.prune()
        assert 20 < removed < 100
        assert await retention.prune() < 10
        left = counted(storage)
    assert left[0] == left[1]
    newest = list_records(storage, Filter()).activities[0]
    assert newest.tool_name == "tool_149"
    if storage.dialect == "sqlite":
        with storage.read() as connection:
            assert connection.execute(text("PRAGMA freelist_count")).scalar_one() <= 10


@pytest.mark.anyio
async def test_what_is_not_indexed_yet_stays(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:
        await journal.write(call("one"), call("two"))
        await digest(journal)
        await journal.write(call("three"))
        await Retention(storage, journal, lambda: Activity(max_records=1)).prune()
        assert "three" in {record.tool_name for record in list_records(storage, Filter()).activities}


@pytest.mark.anyio
async def test_calls_go_on_while_the_log_is_pruned(
    running: Running, storage: Storage, data_dir: Path, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.retention.PAUSE_SECONDS", 0)
    async with running() as journal:
        await journal.write(*(call() for _ in range(600)))
        await digest(journal)
        pruning = asyncio.create_task(Retention(storage, journal, lambda: Activity(max_records=10)).prune())
        written = 0
        while not pruning.done():
            await journal.write(call())
            written += 1
        assert await pruning >= 590
        assert written > 0
    report = verify(storage, public_key_in(data_dir))
    assert report.ok, report.problems
    assert report.chains[0].last == 600 + written


@pytest.mark.anyio
async def test_the_hourly_run_outlives_a_failure(
    running: Running, storage: Storage, call: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mcpproxy.activity.retention.EVERY_SECONDS", 0.01)
    async with running() as journal:
        await journal.write(*(call() for _ in range(5)))
        await digest(journal)
        retention = Retention(storage, journal, lambda: Activity(max_records=2))
        real = retention.prune
        failures = [1, 1]

        async def flaky() -> int:
            if failures:
                failures.pop()
                raise StorageLocked("The database is locked.")
            return await real()

        monkeypatch.setattr(retention, "prune", flaky)
        task = asyncio.create_task(retention.run())
        for _ in range(300):
            if counted(storage)[0] == 2:
                break
            await asyncio.sleep(0.01)
        task.cancel()
        assert counted(storage)[0] == 2
    assert caplog.text.count("retention is put off: The database is locked.") == 2


@pytest.mark.anyio
@pytest.mark.parametrize(("kept", "left"), [(50, 50), (99, 100)], ids=["well beyond", "hardly beyond"])
async def test_a_log_well_beyond_its_bounds_does_not_wait_for_the_hour(
    running: Running,
    storage: Storage,
    data_dir: Path,
    call: Make,
    monkeypatch: pytest.MonkeyPatch,
    kept: int,
    left: int,
) -> None:
    monkeypatch.setattr("mcpproxy.activity.retention.LOOK_SECONDS", 0.02)
    async with running() as journal:
        retention = Retention(storage, journal, lambda: Activity(max_records=kept))
        task = asyncio.create_task(retention.run())
        await asyncio.sleep(0.1)  # the first hour has begun
        await journal.write(*(call() for _ in range(100)))
        await digest(journal)
        async with asyncio.timeout(20):
            while counted(storage)[0] != left:
                await asyncio.sleep(0.02)
            if left == 100:
                await retention.trim()
        assert counted(storage)[0] == left
        task.cancel()
    assert verify(storage, public_key_in(data_dir)).ok


@pytest.mark.anyio
async def test_what_came_during_the_hourly_pruning_does_not_wait_for_the_next_record(
    running: Running, storage: Storage, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.retention.LOOK_SECONDS", 0.02)
    async with running() as journal:
        retention = Retention(storage, journal, lambda: Activity(max_records=50))
        real, written = retention.prune, asyncio.Event()

        async def prune() -> int:
            removed = await real()
            await journal.write(*(call() for _ in range(100)))
            await digest(journal)
            written.set()
            return removed

        monkeypatch.setattr(retention, "prune", prune)
        task = asyncio.create_task(retention.run())
        async with asyncio.timeout(20):
            await written.wait()
            while counted(storage)[0] != 50:
                await asyncio.sleep(0.02)
        task.cancel()


@pytest.fixture
def trimmed(
    running: Running, storage: Storage, call: Make, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Awaitable[int]]:
    """Trims so many records in steps of ten; `rest` hears of each pause instead, and no time passes."""

    async def trim(records: int, settings: Callable[[], Activity], rest: Callable[[float], object]) -> int:
        monkeypatch.setattr("mcpproxy.activity.retention.LOOK_SECONDS", 9000.0)
        monkeypatch.setattr("mcpproxy.activity.retention.ROWS_PER_STEP", 10)

        async def sleep(seconds: float) -> None:
            rest(seconds)

        async with running() as journal:
            await journal.write(*(call() for _ in range(records)))
            await digest(journal)
            monkeypatch.setattr("mcpproxy.activity.retention.asyncio.sleep", sleep)
            return await Retention(storage, journal, settings).trim()

    return trim


@pytest.mark.anyio
async def test_what_is_trimmed_goes_evenly_until_the_next_look(trimmed: Callable[..., Awaitable[int]]) -> None:
    pauses: list[float] = []
    assert await trimmed(101, lambda: Activity(max_records=1), pauses.append) == 100
    # Each pause is for its share of what is left.
    assert [round(pause, -1) for pause in pauses[:3]] == [1000, 1120, 1290] and pauses[-1] < 1


@pytest.mark.anyio
async def test_a_small_rest_does_not_put_off_the_next_look(trimmed: Callable[..., Awaitable[int]]) -> None:
    pauses: list[float] = []
    assert await trimmed(12, lambda: Activity(max_records=1), pauses.append) == 11
    assert max(pauses) <= 9000


@pytest.mark.anyio
async def test_what_the_settings_keep_by_now_is_not_removed_any_more(
    trimmed: Callable[..., Awaitable[int]], storage: Storage
) -> None:
    settings = [Activity(max_records=1), Activity(max_records=75)]  # the operator thinks better of it

    def change(_: float) -> None:
        settings[0] = settings[-1]

    assert await trimmed(101, lambda: settings[0], change) == 26
    assert counted(storage) == [75, 75]


@pytest.mark.anyio
async def test_the_newest_record_stays_so_that_numbers_never_start_again(
    running: Running, storage: Storage, call: Make
) -> None:
    async with running() as journal:
        await journal.write(*(call(f"tool_{n}", timestamp=now() - timedelta(days=400)) for n in range(5)))
        await digest(journal)
        assert await Retention(storage, journal).prune() == 4
        await journal.write(call("after"))
    with storage.read() as connection:
        assert list(connection.execute(select(activity.c.seq).order_by(activity.c.seq)).scalars()) == [5, 6]
