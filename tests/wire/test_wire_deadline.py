"""A deadline ends what its block waits for, and nothing else."""

import asyncio

import pytest

from mcpproxy.deadline import Deadline

pytestmark = pytest.mark.anyio


async def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError), Deadline(asyncio.get_running_loop(), 0.01):
        await asyncio.Event().wait()
    await asyncio.sleep(0)  # the task itself lives on


async def test_what_is_over_in_time_is_left_alone() -> None:
    with Deadline(asyncio.get_running_loop(), 0.01):
        await asyncio.sleep(0)
    await asyncio.sleep(0.03)


async def test_without_seconds_nothing_is_ended() -> None:
    with Deadline(asyncio.get_running_loop(), None) as deadline:
        deadline.move(0.0)
        await asyncio.sleep(0.01)


async def test_a_deadline_that_is_moved_holds_at_its_new_moment() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(TimeoutError), Deadline(loop, 0.01) as deadline:
        deadline.move(began + 0.05)
        await asyncio.Event().wait()
    assert loop.time() >= began + 0.05


async def test_an_error_of_the_block_passes_through() -> None:
    with pytest.raises(ValueError, match="mine"), Deadline(asyncio.get_running_loop(), 1):
        raise ValueError("mine")


async def test_somebody_elses_cancellation_is_no_timeout() -> None:
    async def wait() -> None:
        with Deadline(asyncio.get_running_loop(), 5):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_together_with_a_timeout_stays_a_cancellation() -> None:
    async def wait() -> None:
        with Deadline(asyncio.get_running_loop(), 5) as deadline:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                deadline._expire()
                raise

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
