"""Does a change to one server touch that one alone?"""

import asyncio

import msgspec
import pytest
from tests.support.children import alive, bad_server, run, until
from tests.support.houses import house

from mcpproxy.config.models import Config, Duration
from mcpproxy.upstream import server as life
from mcpproxy.upstream.server import NotReady, State

A, B, C = bad_server("a"), bad_server("b"), bad_server("c")


def test_only_what_changed_is_touched() -> None:
    async def main() -> None:
        async with house(A, B, C) as home:
            await home.ready()
            pids = {name: home.pid(name) for name in "abc"}
            changed = msgspec.structs.replace(B, env={"NEW": "1"})
            await home.pool.apply([A, changed, C, bad_server("d")])
            await home.ready()
            assert (home.pid("a"), home.pid("c")) == (pids["a"], pids["c"])
            assert home.pid("b") != pids["b"] and not alive(pids["b"])
            assert (await home.call("b", "about"))["env"]["NEW"] == "1"
            assert [upstream.name for upstream in home.pool] == ["a", "b", "c", "d"]
            assert home.states_of("a") == home.states_of("c") == ["connecting", "ready"]

    run(main())


def test_what_is_gone_is_ended_and_what_is_the_same_is_left_alone() -> None:
    async def main() -> None:
        async with house(A, B) as home:
            await home.ready()
            pids = {name: home.pid(name) for name in "ab"}
            await home.pool.apply([B])
            assert not alive(pids["a"])
            assert home.pool.get("a") is None
            assert home.pid("b") == pids["b"]
            await home.pool.apply([msgspec.convert(msgspec.to_builtins(B), type(B))])
            assert home.pid("b") == pids["b"]
            await home.pool.apply([B, A])
            await home.ready()
            assert [upstream.name for upstream in home.pool] == ["b", "a"]

    run(main())


def test_calls_in_flight_elsewhere_go_on_while_a_server_is_replaced() -> None:
    async def main() -> None:
        async with house(A, B) as home:
            await home.ready()
            slow = asyncio.create_task(home.call("a", "late", seconds=0.5))
            await asyncio.sleep(0.1)
            await home.pool.apply([A, msgspec.structs.replace(B, quarantined=True)])
            assert home.server("b").state is State.QUARANTINED
            assert await slow == {"late": True}

    run(main())


def test_a_call_to_a_server_that_is_being_replaced_finds_it_stopped_rather_than_unknown() -> None:
    async def main() -> None:
        stubborn = bad_server("a", ignore_term=True)
        async with house(stubborn) as home:
            await home.ready()
            changing = asyncio.create_task(home.pool.apply([msgspec.structs.replace(stubborn, enabled=False)]))
            await asyncio.sleep(0.1)
            with pytest.raises(NotReady):
                await home.call("a", "echo", timeout=0.1)
            await changing

    run(main())


def test_two_changes_at_once_end_in_the_later_one() -> None:
    async def main() -> None:
        async with house(A) as home:
            await asyncio.gather(home.pool.apply([A, B]), home.pool.apply([B]), home.pool.apply([C]))
            await home.ready()
            assert [upstream.name for upstream in home.pool] == ["c"]

    run(main())


def test_settled_means_that_every_server_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 1000.0)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 1000.0)

    async def main() -> None:
        broken = bad_server("broken", exit_at_start=1)
        off = msgspec.structs.replace(bad_server("off"), enabled=False)
        async with house(A, broken, off) as home:
            assert not home.pool.settled
            await until(lambda: home.pool.settled)
            assert home.server("a").state is State.READY

    run(main())


def test_a_server_with_its_own_timeout_keeps_it() -> None:
    async def main() -> None:
        own = msgspec.structs.replace(A, call_tool_timeout=Duration(50))
        async with house(own, config=Config(call_tool_timeout=Duration(60))) as home:
            await home.ready()
            assert home.server("a")._patience() == 50

    run(main())
