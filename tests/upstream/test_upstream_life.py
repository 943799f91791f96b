"""Does a server live as its state says? Connect, break, wait, try again, for ever; nothing that was not asked for."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from tests.support.children import alive, bad_server, run, until
from tests.support.houses import house
from tests.support.http_servers import free_port
from tests.upstream.quick_lives import GOOD, quick

from mcpproxy.config.models import Server
from mcpproxy.upstream import server as life
from mcpproxy.upstream import watch
from mcpproxy.upstream.server import NotReady, State
from mcpproxy.wire.errors import ChannelClosed

__all__ = ["quick"]


# Up, down and up again.


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("era", ["handshake", "modern", "fragile"])
def test_a_server_of_each_era_becomes_ready_and_takes_calls(era: str, loop: str) -> None:
    async def main() -> None:
        async with house(bad_server("a", era=era)) as home:
            await home.ready()
            assert await home.call("a", "echo", x=1) == {"x": 1}
            upstream = home.server("a")
            assert (upstream.state.value, upstream.reason) == ("ready", "")
            assert upstream.protocol == "stdio"
            version = home.listings[-1].protocol_version
            assert version == ("2026-07-28" if era == "modern" else "2025-11-25")
            assert home.listings[-1].server_version == "bad 1"
            pid = home.pid("a")
        assert not alive(pid)
        assert upstream.state.value == "disconnected"

    run(main(), loop)


def test_a_server_that_ignores_what_it_does_not_know_is_asked_the_old_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp.client import session

    monkeypatch.setattr(session, "DISCOVER_TIMEOUT_SECONDS", 0.3)

    async def main() -> None:
        async with house(bad_server("a", era="mute")) as home:
            await home.ready()
            assert await home.call("a", "echo", x=1) == {"x": 1}

    run(main())


def test_a_server_killed_with_9_is_back_by_itself() -> None:
    async def main() -> None:
        async with house(bad_server("a")) as home:
            await home.ready()
            first = home.pid("a")
            os.kill(first, signal.SIGKILL)
            await until(lambda: home.server("a").state is State.BACKING_OFF)
            assert home.server("a").reason == "the process was killed by SIGKILL"
            assert home.server("a").retry_at is not None
            await home.state("a", State.READY)
            assert home.pid("a") != first
            assert home.states_of("a") == ["connecting", "ready", "backing_off", "connecting", "ready"]

    run(main())


def test_a_call_wakes_a_server_that_backs_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 1000.0)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 1000.0)

    async def main() -> None:
        async with house(bad_server("a")) as home:
            await home.ready()
            os.kill(home.pid("a"), signal.SIGKILL)
            await home.state("a", State.BACKING_OFF)
            answers = await asyncio.gather(*(home.call("a", "echo", x=number) for number in range(10)))
            assert answers == [{"x": number} for number in range(10)]

    run(main())


def test_a_call_that_comes_while_a_broken_connection_is_still_torn_down_waits_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 1000.0)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 1000.0)

    async def main() -> None:
        async with house(bad_server("a", ignore_term=True)) as home:
            await home.ready()
            with pytest.raises(ChannelClosed, match="closed its stdout"):
                await home.call("a", "close_stdout")
            assert await home.call("a", "echo", x=1) == {"x": 1}

    run(main())


def test_pauses_grow_and_are_capped_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)

    async def main() -> None:
        async with house(bad_server("a", exit_at_start=1)) as home:
            pauses: list[float] = []
            upstream = home.server("a")
            while len(pauses) < 6:
                await home.state("a", State.BACKING_OFF)
                assert upstream.retry_at is not None
                pauses.append(upstream.retry_at - upstream.since)
                await until(lambda: upstream.state is not State.BACKING_OFF)
            assert all(
                0.6 * expected < pause < 1.1 * expected
                for pause, expected in zip(pauses, [0.05, 0.1, 0.2, 0.4, 0.4, 0.4], strict=True)
            )
            upstream._failures = 100_000
            await home.state("a", State.BACKING_OFF)
            await home.state("a", State.CONNECTING)
            await home.state("a", State.BACKING_OFF)

    run(main())


def test_a_server_that_stayed_up_starts_again_at_the_first_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    monkeypatch.setattr(life, "STEADY_AFTER", 0.0)

    async def main() -> None:
        async with house(bad_server("a")) as home:
            for _ in range(4):
                await home.state("a", State.READY)
                os.kill(home.pid("a"), signal.SIGKILL)
                await until(lambda: home.server("a").state is State.BACKING_OFF)
                upstream = home.server("a")
                assert upstream.retry_at is not None
                assert upstream.retry_at - upstream.since < 0.06

    run(main())


# What the operator said.


@pytest.mark.parametrize(
    ("server", "state"),
    [
        (Server(name="a", command="touch", args=("{ran}",), enabled=False), State.DISABLED),
        (Server(name="a", command="touch", args=("{ran}",), quarantined=True), State.QUARANTINED),
        (Server(name="a", command="touch", args=("{ran}",), quarantined=True, enabled=False), State.DISABLED),
    ],
)
def test_nothing_is_started_for_a_server_that_is_off(server: Server, state: State, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    server = Server(name="a", command="touch", args=(str(ran),), enabled=server.enabled, quarantined=server.quarantined)

    async def main() -> None:
        async with house(server, GOOD) as home:
            await home.ready("good")
            upstream = home.server("a")
            assert upstream.state is state and upstream.reason
            with pytest.raises(NotReady) as refused:
                await home.call("a", "echo")
            assert refused.value.state is state
            upstream.wake()
            await upstream.restart()
            assert upstream.state is state
        assert upstream.state is state
        assert not ran.exists()

    run(main())


def test_restart_makes_a_new_connection_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 1000.0)

    async def main() -> None:
        async with house(bad_server("a")) as home:
            await home.ready()
            first = home.pid("a")
            await home.server("a").restart()
            await home.ready()
            assert home.pid("a") != first and not alive(first)

    run(main())


def test_a_call_to_a_server_that_still_connects_waits_within_its_timeout() -> None:
    async def main() -> None:
        async with house(bad_server("a"), bad_server("hangs", hang_at_start=True)) as home:
            assert await home.call("a", "echo", x=1) == {"x": 1}
            with pytest.raises(NotReady, match=r"still connecting after 0\.3 s"):
                await home.call("hangs", "echo", timeout=0.3)

    run(main())


@pytest.mark.parametrize("kind", ["http", "stdio"])
def test_a_stop_ends_a_server_whatever_it_is_doing(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Stopped at every moment of its attempts, since a cancellation may meet a fault."""
    monkeypatch.setattr(life, "FIRST_PAUSE", 0.0005)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 0.001)
    dice = random.Random(3)
    nobody = f"http://127.0.0.1:{free_port()}/mcp"
    server = Server(name="a", url=nobody) if kind == "http" else Server(name="a", command="false")

    async def main() -> None:
        async with house() as home:
            for _ in range(60):
                await home.pool.apply([server])
                await asyncio.sleep(dice.random() * 0.03)
                async with asyncio.timeout(4):
                    await home.pool.stop()

    run(main())


def test_a_call_that_waits_for_a_server_learns_that_it_was_stopped() -> None:
    async def main() -> None:
        async with house(bad_server("a", hang_at_start=True)) as home:
            waiting = asyncio.create_task(home.call("a", "echo"))
            await asyncio.sleep(0.1)
            await home.pool.stop()
            with pytest.raises(NotReady, match="stopped"):
                await waiting

    run(main())


# Health.


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_an_idle_server_that_stopped_answering_is_replaced(monkeypatch: pytest.MonkeyPatch, era: str) -> None:
    monkeypatch.setattr(watch, "PING_EVERY", 0.1)
    monkeypatch.setattr(watch, "PING_PATIENCE", 0.5)

    async def main() -> None:
        async with house(bad_server("a", era=era)) as home:
            await home.ready()
            frozen = home.pid("a")
            await asyncio.sleep(0.5)
            assert home.states_of("a")[-1] == "ready"
            os.kill(frozen, signal.SIGSTOP)
            assert await home.state("a", State.BACKING_OFF) == "it did not answer a ping within 0.5 s"
            await home.state("a", State.READY)
            assert not alive(frozen)

    run(main())


def test_a_server_that_is_busy_with_a_call_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PING_EVERY", 0.05)
    monkeypatch.setattr(watch, "PING_PATIENCE", 0.1)

    async def main() -> None:
        async with house(bad_server("a")) as home:
            await home.ready()
            os.kill(home.pid("a"), signal.SIGSTOP)
            busy = asyncio.create_task(home.call("a", "echo", x=1))
            await asyncio.sleep(0.6)
            os.kill(home.pid("a"), signal.SIGCONT)
            assert await busy == {"x": 1}
            assert home.states_of("a") == ["connecting", "ready"]

    run(main())
