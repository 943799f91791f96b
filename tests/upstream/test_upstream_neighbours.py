"""What one server does, at start, in a call or at its end, is no other server's business."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.children import alive, b64, bad_server, run, until
from tests.support.houses import house
from tests.upstream.quick_lives import GOOD, quick

from mcpproxy.config.models import Config, Server
from mcpproxy.upstream import server as life
from mcpproxy.upstream.server import State
from mcpproxy.wire.errors import CallTimeout

__all__ = ["quick"]


def test_every_misdeed_of_one_server_leaves_its_neighbour_alone() -> None:
    """While others flood, hang, lie and die, one answers every call, on the same connection."""
    misdeeds: list[tuple[str, dict[str, Any]]] = [
        ("flood", {"data": b64(b"junk\n"), "size": 50_000_000}),
        ("flood", {"data": b64(b"e"), "size": 20_000_000, "fd": 2}),
        ("flood", {"data": b64(b"\n"), "size": 1_000_000, "fd": 2}),
        ("never", {}),
        ("big", {"size": 5_000_000}),
        ("die", {"data": b64(b'{"id":$ID,"resu')}),
        ("close_stdout", {}),
        ("deaf", {}),
    ]

    async def main() -> None:
        bad = [bad_server(f"bad{number}") for number in range(len(misdeeds))]
        async with house(GOOD, *bad, config=Config(max_result_bytes=1_000_000)) as home:
            await home.ready()
            pid = home.pid("good")
            going = [
                asyncio.create_task(home.call(f"bad{number}", tool, timeout=3 if tool == "never" else 60, **arguments))
                for number, (tool, arguments) in enumerate(misdeeds)
            ]
            count = 0
            while not all(task.done() for task in going):
                assert await home.call("good", "echo", n=count) == {"n": count}
                count += 1
            assert count > 50
            assert home.pid("good") == pid
            assert home.states_of("good") == ["connecting", "ready"]
            outcomes = await asyncio.gather(*going, return_exceptions=True)
            assert [type(outcome).__name__ for outcome in outcomes] == [
                "ChannelClosed",
                "dict",
                "dict",
                "CallTimeout",
                "AnswerTooLarge",
                "ChannelClosed",
                "ChannelClosed",
                "dict",
            ]

    run(main())


def test_servers_that_hang_at_start_do_not_keep_others_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "SLOT_PATIENCE", 0.2)

    async def main() -> None:
        hanging = [bad_server(f"hangs{number}", hang_at_start=True) for number in range(4)]
        async with house(*hanging, GOOD, slots=2) as home:
            await home.ready("good")
            assert all(home.server(server.name).state is State.CONNECTING for server in hanging)

    run(main())


def test_starts_are_concurrent_and_bounded(tmp_path: Path) -> None:
    """Each start notes when it began and ended; never more than the slots overlap, but some do."""
    note = tmp_path / "notes"
    script = f"""
import os, sys, time
def note(sign):
    with open({str(note)!r}, "a") as file:
        file.write(sign)
note("+")
time.sleep(0.3)
note("-")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
    program = GOOD.args
    servers = [
        Server(name=f"s{number}", command=sys.executable, args=("-I", "-S", "-c", script, *program))
        for number in range(9)
    ]

    async def main() -> None:
        async with house(*servers, slots=3) as home:
            await home.ready()

    run(main())
    running, most = 0, 0
    for sign in note.read_text():
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert 2 <= most <= 3


def test_after_a_stop_nothing_is_left() -> None:
    async def main() -> None:
        others = set(psutil.Process().children(recursive=True))
        async with house(
            GOOD, bad_server("stubborn", ignore_term=True), bad_server("hangs", hang_at_start=True)
        ) as home:
            await home.ready("good", "stubborn")
            grandchild = (await home.call("good", "grandchild"))["pid"]
            await home.pool.stop()
            assert not list(home.pool)
            await until(lambda: not alive(grandchild))
        await until(lambda: set(psutil.Process().children(recursive=True)) <= others)

    run(main())


def test_a_timed_out_call_leaves_the_server_ready() -> None:
    async def main() -> None:
        async with house(bad_server("a")) as home:
            await home.ready()
            with pytest.raises(CallTimeout):
                await home.call("a", "never", timeout=0.2)
            assert await home.call("a", "echo", x=1) == {"x": 1}
            assert home.states_of("a") == ["connecting", "ready"]

    run(main())
