"""Whatever a child process writes, nonsense, floods or lines without end, costs no more than the call it belongs to."""

import asyncio

import psutil
import pytest
from tests.support.children import alive, b64, call, call_raw, run, spawned, until
from tests.wire.loops import LOOPS, MIB

from mcpproxy.wire import lines
from mcpproxy.wire.dispatch import ChannelDispatcher
from mcpproxy.wire.errors import AnswerTooLarge, ChannelClosed, InvalidAnswer

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
