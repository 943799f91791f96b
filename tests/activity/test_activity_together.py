"""Under load records wait for each other, for a short time, and share a commit."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from mcpproxy.activity import journal as journal_module
from mcpproxy.activity.jobs import Job
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record
from mcpproxy.activity.writer import Writer

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]
SQLITE = pytest.mark.parametrize("setting", ["sqlite"], indirect=True)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many went into each commit."""
    seen: list[int] = []
    serve_now = Writer.serve_now

    def noted(self: Writer, batch: list[Job]) -> bool:
        seen.append(len(batch))
        return serve_now(self, batch)

    monkeypatch.setattr(Writer, "serve_now", noted)
    return seen


async def be_busy(journal: Journal, call: Make) -> None:
    """Have records come in company, as they do under load."""
    await asyncio.gather(*(journal.write(call()) for _ in range(3)))


async def write_later(journal: Journal, record: Record, turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    await journal.write(record)


@SQLITE
@pytest.mark.anyio
@pytest.mark.parametrize(("seconds", "together"), [(60.0, True), (0.0, False)])
async def test_records_that_come_turn_after_turn_share_a_commit_for_a_short_time(
    running: Running, call: Make, sizes: list[int], monkeypatch: pytest.MonkeyPatch, seconds: float, together: bool
) -> None:
    async with running() as journal:
        await be_busy(journal, call)
        sizes.clear()
        monkeypatch.setattr(journal_module, "GATHER_SECONDS", seconds)
        await asyncio.gather(*(write_later(journal, call(), turns) for turns in range(8)))
        assert sum(sizes) == 8
        assert (len(sizes) == 1) is together
