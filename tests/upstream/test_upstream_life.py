"""Does a server live as its state says? Connect, break, wait, try again, for ever; nothing that was not asked for."""

import asyncio
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.children import alive, b64, bad_server, run, until
from tests.support.houses import House, house
from tests.support.http_servers import free_port

from mcpproxy.config.models import Config, Duration, Server
from mcpproxy.upstream import server as life
from mcpproxy.upstream import watch
from mcpproxy.upstream.server import NotReady, State
from mcpproxy.wire.errors import CallTimeout, ChannelClosed

GOOD = bad_server("good")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 0.4)
    monkeypatch.setattr(life, "HANDSHAKE_PATIENCE", 20.0)


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


# Why it does not work.


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"exit_at_start": 3}, "the process exited with code 3"),
        (
            {"exit_at_start": 3, "complain": "one\nNo module named foo\n"},
            "the process exited with code 3; its last words: No module named foo",
        ),
        (
            {"exit_at_start": 0, "complain": "password is hunter2"},
            "the process exited with code 0; its last words: password is ***",
        ),
        (
            {"exit_at_start": 1, "before": "usage: server [--port]\n"},
            "the process exited with code 1; its last words: usage: server [--port]",
        ),
    ],
)
def test_a_server_that_dies_at_start_says_how(options: dict[str, object], reason: str) -> None:
    async def main() -> None:
        async with house(bad_server("a", **options)) as home:
            assert await home.state("a", State.BACKING_OFF) == reason
            with pytest.raises(NotReady) as refused:
                await asyncio.gather(*(home.call("a", "echo") for _ in range(3)))
            assert refused.value.reason == reason
            assert any(reason in line for line in home.server("a").log.lines)

    run(main())


def test_last_words_of_an_earlier_life_are_not_repeated(tmp_path: Path) -> None:
    last = tmp_path / "last"
    script = f"import os, sys; sys.exit(4) if os.path.exists({str(last)!r}) else sys.exit('first words')"

    async def main() -> None:
        async with house(Server(name="a", command=sys.executable, args=("-c", script))) as home:
            reason = await home.state("a", State.BACKING_OFF)
            assert reason == "the process exited with code 1; its last words: first words"
            last.touch()
            await until(lambda: home.server("a").reason == "the process exited with code 4")

    run(main())


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (Server(name="a", command="no-such-thing"), "command 'no-such-thing' was not found on the PATH"),
        (
            Server(name="a", command=sys.executable, working_dir="/no/such"),
            "working_dir '/no/such' is not a directory",
        ),
    ],
)
def test_a_server_that_cannot_be_started_says_why_and_is_tried_again(server: Server, reason: str) -> None:
    async def main() -> None:
        async with house(server) as home:
            assert await home.state("a", State.BACKING_OFF) == reason
            await until(lambda: len(home.states) > 4)

    run(main())


def test_a_handshake_that_is_never_answered_ends_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "HANDSHAKE_PATIENCE", 0.3)

    async def main() -> None:
        server = bad_server("a", hang_at_start=True, complain="thinking\n")
        config = Config(call_tool_timeout=Duration(0.1))
        async with house(server, config=config) as home:
            reason = await home.state("a", State.BACKING_OFF)
            assert reason == "no handshake within 0.3 s; its last words: thinking"

    run(main())


def test_a_short_call_timeout_does_not_cut_the_handshake_short(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        config = Config(call_tool_timeout=Duration(0.001))
        async with house(bad_server("a"), config=config) as home:
            await home.state("a", State.READY)

    run(main())


def test_a_missing_secret_fails_the_server_until_it_is_woken() -> None:
    async def main() -> None:
        def prepare(home: House) -> None:
            home.missing.add("a")

        async with house(bad_server("a"), GOOD, prepare=prepare) as home:
            assert await home.state("a", State.FAILED) == "the secret ${env:NOT_THERE} is not set"
            await home.ready("good")
            assert home.server("a").retry_at is None
            with pytest.raises(NotReady, match="NOT_THERE"):
                await home.call("a", "echo")
            home.missing.clear()
            home.server("a").wake()
            await home.state("a", State.READY)

    run(main())


def test_a_fault_of_our_own_costs_the_attempt_and_not_the_life() -> None:
    async def main() -> None:
        async with house(Server(name="a", url="http://user:pw@[::1", protocol="sse")) as home:
            await home.state("a", State.BACKING_OFF)
            await until(lambda: len(home.states) > 4)

    run(main())


def test_a_listener_that_fails_costs_nothing() -> None:
    async def main() -> None:
        def prepare(home: House) -> None:
            home.states = None  # type: ignore[assignment]

        async with house(bad_server("a"), prepare=prepare) as home:
            await home.ready()
            assert await home.call("a", "echo", x=1) == {"x": 1}

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


# One server is no other's business.


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
                asyncio.create_task(home.call(f"bad{number}", tool, timeout=3, **arguments))
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
