"""A child process starts as told or says why not, and when it ends, its calls and what it started end with it."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.support.children import LIMIT, alive, b64, call, call_raw, run, spawned, until
from tests.wire.loops import LOOPS

from mcpproxy.wire.errors import ChannelClosed
from mcpproxy.wire.reaper import Reaper
from mcpproxy.wire.stdio import SpawnError, StdioChannel, child_environment

# Start.


async def _ask(command: str, cwd: str | None = None) -> None:
    """Start this and ask it something."""
    reaper = Reaper()
    try:
        channel = await StdioChannel.spawn(
            command,
            [],
            env=child_environment({}),
            cwd=cwd,
            max_result_bytes=LIMIT,
            on_stderr=lambda data: None,
            reaper=reaper,
        )
        try:
            await channel.call_raw("ping", b"{}", timeout=20)
        finally:
            await channel.close()
    finally:
        reaper.stop()


@pytest.mark.parametrize(
    ("command", "cwd", "reason"),
    [
        ("no-such-command-anywhere", None, "'no-such-command-anywhere' was not found on the PATH"),
        ("/no/such/program", None, "'/no/such/program' is not a program that can be run"),
        ("/etc/passwd", None, "'/etc/passwd' is not a program that can be run"),
        (sys.executable, "/no/such/folder", "working_dir '/no/such/folder' is not a directory"),
        (sys.executable, "/etc/passwd", "working_dir '/etc/passwd' is not a directory"),
    ],
)
def test_a_command_that_cannot_be_started_says_why(command: str, cwd: str | None, reason: str) -> None:
    with pytest.raises(SpawnError) as refused:
        run(_ask(command, cwd))
    assert reason in str(refused.value)


def test_a_relative_command_is_found_from_the_working_directory(tmp_path: Path) -> None:
    program = tmp_path / "serve"
    program.write_text("#!/bin/sh\nread line\nexit 5\n")
    program.chmod(0o700)
    with pytest.raises(ChannelClosed, match="code 5"):
        run(_ask("./serve", str(tmp_path)))


def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    program = tmp_path / "serve"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o700)
    with pytest.raises(SpawnError, match="could not be started"):
        run(_ask(str(program)))


def test_a_child_sees_what_it_was_given_and_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CANARY_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@proxy:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("TERM", "() { echo owned; }")

    async def main() -> None:
        async with spawned(env={"GIVEN": "1", "LANG": "xx"}, cwd=str(tmp_path)) as channel:
            about = await call(channel, "about")
            seen = about["env"]
            assert about["cwd"] == str(tmp_path)
            assert (seen["GIVEN"], seen["LANG"], seen["LC_TIME"]) == ("1", "xx", "C")
            assert seen["PATH"] == os.environ["PATH"]
            assert seen["HTTPS_PROXY"] == "http://proxy:1"
            assert not {"CANARY_TOKEN", "PYTHONPATH", "HTTP_PROXY", "TERM"} & set(seen)
            assert "secret" not in json.dumps(seen)
            assert os.getpgid(about["pid"]) == about["pid"] == channel.pid

    run(main())


# Ends.


@LOOPS
def test_a_child_that_dies_in_mid_answer_fails_its_calls_with_how_it_ended(loop: str) -> None:
    async def main() -> None:
        stderr: list[bytes] = []
        async with spawned(stderr=stderr) as channel:
            waiting = asyncio.create_task(call(channel, "never"))
            with pytest.raises(ChannelClosed, match="exited with code 7"):
                await call(channel, "die", data=b64(b'{"id":$ID,"result":{"ha'), code=7, stderr="out of cheese")
            with pytest.raises(ChannelClosed, match="exited with code 7"):
                await waiting
            with pytest.raises(ChannelClosed, match="exited with code 7"):
                await call(channel, "echo")
            assert b"".join(stderr) == b"out of cheese"

    run(main(), loop)


@LOOPS
def test_the_last_words_of_a_dying_child_are_still_heard(loop: str) -> None:
    async def main() -> None:
        async with spawned() as channel:
            whole = b'{"id":$ID,"result":"' + b"x" * 60_000 + b'"}\n'
            assert len(await call_raw(channel, "die", data=b64(whole))) == 60_002

    run(main(), loop)


def test_a_child_killed_by_a_signal_is_named_so() -> None:
    async def main() -> None:
        async with spawned() as channel:
            waiting = asyncio.create_task(call(channel, "never"))
            await call(channel, "echo")
            os.kill(channel.pid, signal.SIGKILL)
            with pytest.raises(ChannelClosed, match="killed by SIGKILL"):
                await waiting
            assert await channel.closed == "the process was killed by SIGKILL"

    run(main())


@LOOPS
def test_a_child_that_closes_its_stdout_but_lives_on_is_given_up_and_ended(loop: str) -> None:
    async def main() -> None:
        async with spawned() as channel:
            with pytest.raises(ChannelClosed, match="closed its stdout"):
                await call(channel, "close_stdout")
            pid = channel.pid
        assert not alive(pid)

    run(main(), loop)


@LOOPS
def test_a_child_that_ignores_sigterm_is_killed(loop: str) -> None:
    async def main() -> None:
        async with spawned(ignore_term=True) as channel:
            await call(channel, "echo")
            pid = channel.pid
        assert not alive(pid)

    run(main(), loop)


@LOOPS
def test_what_a_child_started_is_ended_with_it(loop: str) -> None:
    async def main() -> None:
        async with spawned() as channel:
            first = (await call(channel, "grandchild"))["pid"]
            assert alive(first)
        await until(lambda: not alive(first), "a grandchild ends with a stopped child")
        async with spawned() as channel:
            second = (await call(channel, "grandchild"))["pid"]
            with pytest.raises(ChannelClosed):
                await call(channel, "die")
        await until(lambda: not alive(second), "a grandchild ends with a child that died by itself")

    run(main(), loop)
