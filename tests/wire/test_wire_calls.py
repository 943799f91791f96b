"""When does waiting end? Deadlines, progress and cancellation of one call, and what comes too late."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import b64, call, call_raw, run, spawned, until

from mcpproxy.wire import lines
from mcpproxy.wire.dispatch import ChannelDispatcher
from mcpproxy.wire.errors import CallTimeout
from mcpproxy.wire.stdio import StdioChannel


def heard(record: Path, method: str) -> list[dict[str, Any]]:
    """What the child was told by that method, so far."""
    lines = record.read_bytes().splitlines() if record.exists() else []
    return [message for message in map(json.loads, lines) if message.get("method") == method]


async def _progress(channel: StdioChannel, reports: list[Any], *, timeout: float, most: float, **arguments: Any) -> Any:
    params = json.dumps({"name": "progress", "arguments": arguments}).encode()
    raw = await channel.call_raw(
        "tools/call", params, timeout=timeout, max_timeout=most, on_progress=lambda raw: reports.append(json.loads(raw))
    )
    return json.loads(raw)["structuredContent"]


def test_a_call_that_is_never_answered_times_out_and_the_server_hears_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        record = tmp_path / "heard"
        async with spawned(record=str(record)) as channel:
            await call(channel, "echo")
            with pytest.raises(CallTimeout, match=r"no answer within 0\.\d s"):
                await call(channel, "never", timeout=0.2)
            await until(lambda: heard(record, "notifications/cancelled"))
            asked = heard(record, "tools/call")[-1]
            (told,) = heard(record, "notifications/cancelled")
            assert told["params"] == {"requestId": asked["id"], "reason": "timed out"}
            assert channel.in_flight == 0

    run(main())


def test_a_caller_that_goes_away_cancels_its_call(tmp_path: Path) -> None:
    async def main() -> None:
        record = tmp_path / "heard"
        async with spawned(record=str(record)) as channel:
            going = asyncio.create_task(call(channel, "never"))
            await until(lambda: heard(record, "tools/call"))
            going.cancel()
            with pytest.raises(asyncio.CancelledError):
                await going
            await until(lambda: heard(record, "notifications/cancelled"))
            assert heard(record, "notifications/cancelled")[0]["params"]["reason"] == "the caller is gone"
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


def test_an_answer_that_comes_too_late_is_dropped() -> None:
    async def main() -> None:
        async with spawned() as channel:
            await call(channel, "echo")
            with pytest.raises(CallTimeout):
                await call(channel, "late", seconds=0.4, timeout=0.1)
            assert await call(channel, "late", seconds=0.6) == {"late": True}
            assert channel.stray_answers == 1

    run(main())


def test_large_answers_that_come_too_late_are_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_JUNK_BYTES", 100_000)

    async def main() -> None:
        async with spawned(limit=16 * 1024 * 1024) as channel:
            await call(channel, "echo")
            for _ in range(3):
                with pytest.raises(CallTimeout):
                    await call(channel, "big", size=10 * 1024 * 1024, timeout=0.001)
            await until(lambda: channel.stray_answers == 3)
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


def test_progress_is_handed_on_as_it_came_and_extends_the_deadline() -> None:
    async def main() -> None:
        async with spawned() as channel:
            await call(channel, "echo")
            reports: list[Any] = []
            done = await _progress(channel, reports, timeout=0.6, most=20, count=8, every=0.15)
            assert done == {"done": True}
            assert [report["progress"] for report in reports] == list(range(8))

    run(main())


def test_progress_extends_the_deadline_no_further_than_the_longest() -> None:
    async def main() -> None:
        async with spawned() as channel:
            await call(channel, "echo")
            reports: list[Any] = []
            with pytest.raises(CallTimeout) as late:
                await _progress(channel, reports, timeout=0.4, most=0.8, count=50, every=0.05, answer=False)
            assert late.value.seconds >= 0.7
            assert len(reports) < 50

    run(main())


def test_progress_never_shortens_a_deadline_that_is_longer_than_the_longest() -> None:
    async def main() -> None:
        async with spawned() as channel:
            await call(channel, "echo")
            assert await _progress(channel, [], timeout=20, most=0.01, count=3, every=0.1) == {"done": True}

    run(main())


def test_without_a_listener_the_server_is_not_asked_for_progress(tmp_path: Path) -> None:
    async def main() -> None:
        record = tmp_path / "heard"
        async with spawned(record=str(record)) as channel:
            await channel.call_raw("tools/call", b'{"name":"echo"}', timeout=20, meta=b'"mine":1')
            await _progress(channel, [], timeout=20, most=20, count=1, every=0)
            plain, asking = heard(record, "tools/call")
            assert plain["params"]["_meta"] == {"mine": 1}
            assert asking["params"]["_meta"] == {"progressToken": asking["id"]}

    run(main())


def test_progress_on_a_call_that_is_over_disturbs_nobody() -> None:
    async def main() -> None:
        async with spawned() as channel:
            with pytest.raises(CallTimeout):
                await _progress(channel, [], timeout=0.2, most=0.2, count=100, every=0.005, answer=False)
            assert await call(channel, "echo", a=1) == {"a": 1}

    run(main())


def test_a_listener_that_fails_costs_no_answer() -> None:
    async def main() -> None:
        def broken(_params: bytes) -> None:
            raise ZeroDivisionError

        async with spawned() as channel:
            params = b'{"name":"progress","arguments":{"count":2,"every":0}}'
            raw = await channel.call_raw("tools/call", params, timeout=20, on_progress=broken)
            assert json.loads(raw)["structuredContent"] == {"done": True}

    run(main())


def test_what_the_server_tells_is_heard() -> None:
    async def main() -> None:
        told: list[tuple[str, Any]] = []

        async def on_request(_context: object, _method: str, _params: Any) -> dict[str, Any]:
            return {}

        async def on_notify(_context: object, method: str, params: Any) -> None:
            told.append((method, params))

        async with spawned() as channel:
            running = asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify))
            await call(channel, "notify", method="notifications/tools/list_changed")
            await call(channel, "notify", method="x", more={"params": {"a": 1}})
            await until(lambda: len(told) == 2)
            assert told == [("notifications/tools/list_changed", {}), ("x", {"a": 1})]
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    run(main())


def test_what_the_server_asks_is_answered_or_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async def on_request(_context: object, method: str, params: Any) -> dict[str, Any]:
            if method == "fail":
                raise ZeroDivisionError
            return {"asked": method, "with": params}

        async def on_notify(_context: object, _method: str, _params: Any) -> None: ...

        record = tmp_path / "heard"
        async with spawned(record=str(record)) as channel:
            running = asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify))
            asked = b'{"id":"s1","method":"roots/list","params":{"a":1}}\n{"id":7,"method":"fail"}\n'
            await call_raw(channel, "raw", data=b64(asked + b'{"id":$ID,"result":{}}\n'))
            await until(lambda: len(record.read_bytes().splitlines()) == 3)
            answers = [json.loads(line) for line in record.read_bytes().splitlines()[1:]]
            assert {answer["id"]: answer.get("result") for answer in answers} == {
                "s1": {"asked": "roots/list", "with": {"a": 1}},
                7: None,
            }
            assert answers[-1]["error"]["message"] == "the client could not handle this request"
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    run(main())
