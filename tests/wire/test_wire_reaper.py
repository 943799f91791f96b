"""Is anything left when we are gone? A process that holds children, and grandchildren, is ended in every way."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.support.children import alive, call, command, run, spawned, until

from mcpproxy.wire.reaper import Reaper

ROOT = Path(__file__).parents[2]
HOLDER = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.support.children import call, spawned

async def main():
    async with spawned() as first, spawned(ignore_term=True) as second:
        pids = [first.pid, second.pid]
        for channel in (first, second):
            pids.append((await call(channel, "grandchild"))["pid"])
            pids.append((await call(channel, "grandchild", apart=True))["pid"])
        print(*pids, flush=True)
        if {wait}:
            await asyncio.sleep(1000)

asyncio.run(main())
"""


def _hold(wait: bool) -> tuple["subprocess.Popen[str]", list[int]]:
    """Another process that holds two children with two children each, one in a session of its own; all their ids."""
    script = HOLDER.format(root=str(ROOT), wait=wait)
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    return holder, [int(pid) for pid in holder.stdout.readline().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_holder_is_killed_its_children_and_theirs_are_ended(number: signal.Signals) -> None:
    holder, pids = _hold(wait=True)
    assert len(pids) == 6 and all(map(alive, pids))
    helpers = psutil.Process(holder.pid).children(recursive=True)
    holder.send_signal(number)
    holder.communicate()
    asyncio.run(until(lambda: not any(map(alive, pids)), "children and grandchildren are gone"))
    asyncio.run(until(lambda: not any(alive(helper.pid) for helper in helpers), "and the reaper with them"))


def test_after_a_normal_stop_nothing_is_left() -> None:
    holder, pids = _hold(wait=False)
    assert len(pids) == 6
    holder.communicate()
    assert holder.returncode == 0
    asyncio.run(until(lambda: not any(map(alive, pids)), "children and grandchildren are gone"))


def test_a_reaper_that_somebody_killed_is_replaced_and_told_of_everybody() -> None:
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    others = set(psutil.Process().children())
    reaper = Reaper()
    reaper.start()
    reaper.watch(child.pid)
    (helper,) = set(psutil.Process().children()) - others
    helper.kill()
    helper.wait()
    reaper.watch(child.pid)  # to nobody
    reaper.start()
    reaper.stop()
    assert child.wait(timeout=20) == -signal.SIGTERM


def test_a_group_that_was_forgotten_is_left_alone() -> None:
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    reaper = Reaper()
    reaper.start()
    reaper.watch(child.pid)
    reaper.forget(child.pid)
    reaper.stop()
    assert child.poll() is None
    child.kill()
    child.wait()


def test_many_children_started_at_once_share_one_reaper() -> None:
    async def main() -> None:
        from mcpproxy.wire.stdio import StdioChannel, child_environment

        others = set(psutil.Process().children())
        reaper = Reaper()
        program, *args = command()
        channels = await asyncio.gather(
            *(
                StdioChannel.spawn(
                    program,
                    args,
                    env=child_environment({}),
                    cwd=None,
                    max_result_bytes=10_000,
                    on_stderr=lambda data: None,
                    reaper=reaper,
                )
                for _ in range(8)
            )
        )
        assert len(set(psutil.Process().children()) - others) == 8 + 1
        assert [await call(channel, "echo", a=1) for channel in channels] == [{"a": 1}] * 8
        await asyncio.gather(*(channel.close() for channel in channels))
        reaper.stop()
        assert set(psutil.Process().children()) <= others

    run(main())


def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    async def main() -> None:
        async def start() -> None:
            async with spawned() as channel:
                await call(channel, "never")

        others = set(psutil.Process().children())
        for wait in (0, 0.001, 0.05):
            starting = asyncio.create_task(start())
            await asyncio.sleep(wait)
            starting.cancel()
            await asyncio.wait({starting})
        await until(lambda: set(psutil.Process().children()) <= others, "no child is left")

    run(main())


def test_a_child_does_not_inherit_our_open_files() -> None:
    async def main() -> None:
        reading, writing = os.pipe()
        os.set_inheritable(writing, True)
        async with spawned() as channel:
            await call(channel, "echo")
            assert {int(fd.name) for fd in Path(f"/proc/{channel.pid}/fd").iterdir()} == {0, 1, 2}
        os.close(reading)
        os.close(writing)

    for loop in ("asyncio", "uvloop"):
        run(main(), loop)


def test_when_one_server_is_closed_what_left_its_group_is_ended_and_its_neighbours_children_are_not() -> None:
    async def main() -> None:
        async with spawned() as kept:
            async with spawned() as closed:
                stray = (await call(closed, "grandchild", apart=True))["pid"]
                neighbour = (await call(kept, "grandchild", apart=True))["pid"]
            await until(lambda: not alive(stray), "the stray is gone")
            assert alive(neighbour)
        await until(lambda: not alive(neighbour), "and with its own server the other")

    run(main())
