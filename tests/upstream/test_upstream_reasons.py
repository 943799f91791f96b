"""A server that does not work says why, in its own words where it has any, and is tried again."""

import asyncio
import sys
from pathlib import Path

import pytest
from tests.support.children import bad_server, run, until
from tests.support.houses import House, house
from tests.upstream.quick_lives import GOOD, quick

from mcpproxy.config.models import Config, Duration, Server
from mcpproxy.upstream import server as life
from mcpproxy.upstream.server import NotReady, State

__all__ = ["quick"]


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
