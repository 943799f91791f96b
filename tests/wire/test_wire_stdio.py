"""What can a child process do to us? Each misdeed costs the call it belongs to a clear error, and nothing else."""

import asyncio
import gc
import json
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import psutil
import pytest
from tests.support.children import LIMIT, alive, b64, call, call_raw, run, spawned, until

from mcpproxy.wire import lines
from mcpproxy.wire.dispatch import ChannelDispatcher
from mcpproxy.wire.errors import AnswerTooLarge, CallTimeout, ChannelClosed, InvalidAnswer, RpcError, TooManyCalls
from mcpproxy.wire.reaper import Reaper
from mcpproxy.wire.stdio import SpawnError, StdioChannel, child_environment

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
MIB = 1024 * 1024


# The good day.


@LOOPS
def test_many_calls_at_once_each_get_their_own_answer(loop: str) -> None:
    async def main() -> None:
        async with spawned() as channel:
            answers = await asyncio.gather(*(call(channel, "echo", n=number) for number in range(300)))
            assert answers == [{"n": number} for number in range(300)]
            assert channel.in_flight == 0

    run(main(), loop)


@LOOPS
def test_a_large_answer_within_the_limit_comes_whole(loop: str) -> None:
    async def main() -> None:
        async with spawned(limit=8 * MIB) as channel:
            raw = await call_raw(channel, "big", size=5 * MIB)
            assert raw == b'{"x":"' + b"x" * (5 * MIB) + b'"}'

    run(main(), loop)


@pytest.mark.parametrize(
    "result",
    [b'{"n":1.0,"m":0.10,"k":1e400}', b'{"a":1,"a":2}', b'{ "a" :\t1 }', rb'{"t":"\ud83d"}', b'{"n":1e2}', b"[]"],
)
def test_a_result_arrives_byte_for_byte(result: bytes) -> None:
    async def main() -> None:
        async with spawned() as channel:
            line = b'{"jsonrpc":"2.0","id":$ID,"result":%s}\n' % result
            assert await call_raw(channel, "raw", data=b64(line)) == result

    run(main())


@pytest.mark.parametrize("written", [b'"$ID"', b"$ID.0", b"$ID"])
def test_an_answer_finds_its_call_however_the_id_is_written(written: bytes) -> None:
    async def main() -> None:
        async with spawned() as channel:
            assert await call_raw(channel, "raw", data=b64(b'{"id":%s,"result":{}}\r\n' % written)) == b"{}"

    run(main())


def test_a_newline_in_the_arguments_cannot_smuggle_a_second_message(tmp_path: Path) -> None:
    async def main() -> None:
        record = tmp_path / "heard"
        async with spawned(record=str(record)) as channel:
            smuggled = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"die"}}'
            params = b'{"name":"echo","arguments":{"a":\n%s\r\n,"b":\r2}}' % smuggled
            answer = json.loads(await channel.call_raw("tools/call", params, timeout=20))
            assert answer["structuredContent"] == {"a": json.loads(smuggled), "b": 2}
            assert len(record.read_bytes().splitlines()) == 1

    run(main())


def test_errors_of_the_server_come_with_their_code() -> None:
    async def main() -> None:
        async with spawned() as channel:
            with pytest.raises(RpcError) as refused:
                await channel.call_raw("no/such", b"{}", timeout=20)
            assert (refused.value.code, refused.value.message) == (-32601, "no method no/such")
            both = b'{"id":$ID,"result":null,"error":{"code":5,"message":"no","data":{"a":1}}}\n'
            with pytest.raises(RpcError) as refused:
                await call_raw(channel, "raw", data=b64(both))
            assert (refused.value.code, refused.value.data) == (5, {"a": 1})

    run(main())


# Nonsense on stdout.


@LOOPS
def test_banners_and_other_text_are_passed_over_and_kept_for_the_log(loop: str) -> None:
    async def main() -> None:
        stderr: list[bytes] = []
        async with spawned(before="Welcome!\n\n  to this server\nno newline yet: ", stderr=stderr) as channel:
            await call_raw(channel, "raw", data=b64(b'and now\n{"id":$ID,"result":{}}\n'))
            assert stderr == [b"Welcome!\n", b"to this server\n", b"no newline yet: and now\n"]

    run(main(), loop)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":$ID,"result":{"t":"\xff\xfe"}}',
        b'{"id":$ID,"result":{"n":NaN}}',
        b'{"id":$ID,"result":{"half":',
        b'{"result":{"t":"\xff"},"id":$ID}',
        b'{"id":$ID,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id":$ID}',
        b'[{"id":$ID,"result":{"t":"\xff"}},5,{"method":"m"}]',
    ],
    ids=lambda line: repr(line[:30]),
)
def test_a_broken_answer_fails_its_own_call_at_once(line: bytes) -> None:
    async def main() -> None:
        async with spawned() as channel:
            other = asyncio.create_task(call(channel, "late", seconds=0.3))
            with pytest.raises(InvalidAnswer):
                await call_raw(channel, "raw", data=b64(line + b"\n"))
            assert await other == {"late": True}

    run(main())


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"[[[",
        b"{]",
        b'{"id":null,"result":{}}',
        b'{"id":"' + b"9" * 5000 + b'","result":{}}',
        b'{"id":999999,"result":{"for":"nobody"}}',
        b'{"id":-1,"error":{}}',
        b'{"method":"notifications/progress","params":{"progressToken":"' + b"9" * 5000 + b'"}}',
        b'{"method":"notifications/progress","params":{"progressToken":[1]}}',
        b'{"method":"notifications/progress","params":[1]}',
        b'{"method":"notifications/tools/list_changed","params":"text"}',
        b'{"method":"\\ud800","params":{}}',
        b'{"id":"\\ud800","method":"ping"}',
        b'{"id":{},"method":5}',
    ],
    ids=lambda line: repr(line[:40]),
)
def test_what_belongs_to_nobody_disturbs_nobody(line: bytes) -> None:
    async def main() -> None:
        async with spawned() as channel:
            data = line + b'\n{"id":$ID,"result":{"after":1}}\n'
            assert await call_raw(channel, "raw", data=b64(data)) == b'{"after":1}'

    run(main())


def test_the_second_of_two_answers_is_dropped() -> None:
    async def main() -> None:
        async with spawned() as channel:
            twice = b'{"id":$ID,"result":1}\n{"id":$ID,"result":2}\n'
            assert await call_raw(channel, "raw", data=b64(twice)) == b"1"
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


@LOOPS
@pytest.mark.parametrize("junk", [b"junk\n", b"x", b"\n", b"{}\n", b'{"id":99999,"result":{}}\n', b"[{]\n"])
def test_a_child_that_floods_stdout_is_stopped_and_says_why(loop: str, junk: bytes) -> None:
    async def main() -> None:
        async with spawned() as channel, spawned() as good:
            flooding = asyncio.create_task(call(channel, "flood", data=b64(junk), size=200 * MIB))
            while not flooding.done():
                assert await call(good, "echo", a=1) == {"a": 1}
            with pytest.raises(ChannelClosed, match="bytes to stdout that are no answer to anything"):
                await flooding
            await until(lambda: not alive(channel.pid), "the flooding child is gone")

    run(main(), loop)


def test_a_flood_of_notices_is_thinned_out() -> None:
    async def main() -> None:
        told: list[str] = []

        async def on_notify(_context: object, method: str, _params: object) -> None:
            told.append(method)

        async def on_request(_context: object, _method: str, _params: object) -> dict[str, object]:
            return {}

        async with spawned() as channel:
            running = asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify))
            notice = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n'
            await call(channel, "flood", data=b64(notice), size=MIB)
            assert 0 < len(told) < 5000 < MIB / len(notice)
            running.cancel()

    run(main())


def test_a_large_answer_given_twice_is_no_flood() -> None:
    async def main() -> None:
        async with spawned(limit=64 * MIB) as channel:
            for _ in range(3):
                big = b'{"id":$ID,"result":"' + b"x" * (8 * MIB) + b'"}\n'
                await call_raw(channel, "raw", data=b64(big + big))
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


# Size.


@LOOPS
@pytest.mark.parametrize("id_last", [False, True])
def test_an_answer_over_the_limit_fails_its_call_and_the_channel_goes_on(loop: str, id_last: bool) -> None:
    async def main() -> None:
        async with spawned(limit=MIB) as channel:
            other = asyncio.create_task(call(channel, "late", seconds=0.5))
            with pytest.raises(AnswerTooLarge, match=f"max_result_bytes \\({MIB} bytes\\)"):
                await call_raw(channel, "big", size=40 * MIB, id_last=id_last)
            assert await other == {"late": True}
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main(), loop)


def test_an_answer_over_a_tiny_limit_costs_its_call_only() -> None:
    async def main() -> None:
        async with spawned(limit=500) as channel:
            with pytest.raises(AnswerTooLarge):
                await call_raw(channel, "big", size=5 * MIB)
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


def test_a_line_of_100_mb_leaves_our_memory_as_it_was() -> None:
    limit = 32 * MIB

    async def main() -> None:
        async with spawned(limit=limit) as channel:
            await call(channel, "echo", a=1)
            us = psutil.Process()
            before, most = us.memory_info().rss, 0
            lost = asyncio.create_task(call_raw(channel, "big", size=100 * 1000 * 1000, id_last=True))
            while not lost.done():
                most = max(most, us.memory_info().rss)
                await asyncio.sleep(0.005)
            with pytest.raises(AnswerTooLarge):
                await lost
            assert most - before < 2 * limit
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


def test_a_line_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 8 * MIB)

    async def main() -> None:
        async with spawned() as channel:
            other = asyncio.create_task(call(channel, "never"))
            with pytest.raises(AnswerTooLarge):
                await call_raw(channel, "big", size=100 * MIB)
            with pytest.raises(ChannelClosed, match=f"a line of more than {8 * MIB} bytes"):
                await other

    run(main())


def test_an_oversized_request_of_the_server_fails_no_call_of_ours() -> None:
    async def main() -> None:
        async with spawned(limit=10_000) as channel:
            asked = b'{"id":$ID,"method":"sampling/createMessage","params":"' + b"x" * 20_000 + b'"}\n'
            assert await call_raw(channel, "raw", data=b64(asked + b'{"id":$ID,"result":1}\n')) == b"1"

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


# A child that does not read.


@LOOPS
def test_calls_to_a_child_that_does_not_read_time_out_and_our_memory_stays_bounded(loop: str) -> None:
    async def main() -> None:
        async with spawned() as channel:
            await call(channel, "deaf")
            large = "x" * MIB
            before, _ = tracemalloc.get_traced_memory()
            calls = [asyncio.create_task(call(channel, "echo", timeout=0.3, large=large)) for _ in range(16)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [CallTimeout] * 16
            del calls, outcomes
            await asyncio.sleep(0.1)
            gc.collect()
            # One message waits to be written; the rest was never taken over.
            assert tracemalloc.get_traced_memory()[0] - before < 3 * MIB

    tracemalloc.start()
    run(main(), loop)
    tracemalloc.stop()


def test_a_server_that_asks_without_reading_our_answers_is_not_answered_for_ever() -> None:
    async def main() -> None:
        answered = 0

        async def on_request(_context: object, _method: str, _params: object) -> dict[str, object]:
            nonlocal answered
            answered += 1
            return {"large": "x" * 100_000}

        async def on_notify(_context: object, _method: str, _params: object) -> None: ...

        async with spawned() as channel:
            running = asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify))
            questions = b'{"jsonrpc":"2.0","id":"q","method":"roots/list"}\n' * 5000
            await call(channel, "deaf", data=b64(questions))
            await until(lambda: answered > 10)
            await asyncio.sleep(0.2)
            assert answered < 200
            running.cancel()

    run(main())


def test_more_calls_than_a_server_can_hold_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpproxy.wire.channel.MAX_PENDING", 3)

    async def main() -> None:
        async with spawned() as channel:
            waiting = [asyncio.create_task(call(channel, "late", seconds=0.3)) for _ in range(3)]
            await until(lambda: channel.in_flight == 3)
            with pytest.raises(TooManyCalls):
                await call(channel, "echo")
            await asyncio.gather(*waiting)
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


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
