"""What can a child process do to us? Each misdeed costs the call it belongs to a clear error, and nothing else."""

import asyncio
import gc
import json
import tracemalloc
from pathlib import Path

import pytest
from tests.support.children import b64, call, call_raw, run, spawned, until
from tests.wire.loops import LOOPS, MIB

from mcpproxy.wire.dispatch import ChannelDispatcher
from mcpproxy.wire.errors import CallTimeout, RpcError, TooManyCalls

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
