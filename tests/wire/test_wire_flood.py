"""Does a stream of events that is of no use to anybody come to an end, and one that is of use not?"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.http_servers import Handler, HttpUpstream, event, serving, stream

from mcpproxy.wire import channel as wire_channel
from mcpproxy.wire import events, http
from mcpproxy.wire.envelope import RequestId
from mcpproxy.wire.errors import ChannelClosed
from mcpproxy.wire.http import HttpChannel
from mcpproxy.wire.sse import SseChannel

JUNK = pytest.mark.parametrize(
    "junk", [b"\n", b": still here\n", b"event: other\ndata: x\n\n", event({"method": "notifications/message"})]
)
TOO_MUCH = "more than 16777216 bytes of events that are no answer"


async def flood(request: web.Request, junk: bytes) -> web.StreamResponse:
    """The same for ever, or until nobody takes it any more."""
    response = await stream(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await response.write(junk * max(1, 65_536 // len(junk)))
    return response


@contextlib.asynccontextmanager
async def talking(verb: str, handler: Handler) -> AsyncIterator[tuple[HttpChannel, HttpUpstream]]:
    """A channel to a server that does this for one verb or method."""
    upstream = HttpUpstream()
    upstream.on[verb] = handler
    async with serving(upstream) as url:
        channel = HttpChannel(url, headers={}, max_result_bytes=1024 * 1024)
        try:
            yield channel, upstream
        finally:
            await channel.close()


async def call(channel: HttpChannel) -> Any:
    raw = await channel.call_raw("tools/call", b'{"name":"a"}', timeout=50, on_progress=lambda report: None)
    return json.loads(raw)["structuredContent"]


@JUNK
def test_an_answer_that_never_comes_to_the_point_is_given_up(junk: bytes) -> None:
    async def main() -> None:
        async with talking("tools/call", lambda request, message: flood(request, junk)) as (channel, _):
            with pytest.raises(ChannelClosed, match=TOO_MUCH):
                await call(channel)

    run(main())


@JUNK
def test_the_one_stream_of_a_server_of_2024_is_given_up(junk: bytes) -> None:
    async def main() -> None:
        async with serving(lambda request: flood(request, b"event: endpoint\ndata: /post\n\n" + junk * 9999)) as url:
            channel = SseChannel(url, headers={}, max_result_bytes=1024 * 1024)
            try:
                await channel.open()
                assert TOO_MUCH in await channel.closed
            finally:
                await channel.close()

    run(main())


def test_a_listening_stream_that_floods_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_JUNK_BYTES", 100_000)
    monkeypatch.setattr(http, "_PAUSE_AFTER_FLOOD", 1000)

    async def main() -> None:
        async with talking("GET", lambda request, message: flood(request, b"retry: 1\n")) as (channel, upstream):
            listening = asyncio.create_task(channel.listen())
            await until(lambda: upstream.seen)
            await asyncio.sleep(0.5)  # in which it would be asked again a few times
            assert len(upstream.seen) == 1
            listening.cancel()

    run(main())


def test_much_that_is_of_use_is_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_JUNK_BYTES", 20_000)

    async def report(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        token = message["params"]["_meta"]["progressToken"]
        progress = {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}
        last = event({"id": message["id"], "result": {"structuredContent": {"x": "x" * 100_000}}})
        return await stream(request, *([b": still here\n\n" + event(progress)] * 200), last)

    async def main() -> None:
        async with talking("tools/call", report) as (channel, _):
            assert await call(channel) == {"x": "x" * 100_000}

    run(main())


def test_an_answer_in_many_lines_is_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_JUNK_BYTES", 20_000)
    lines = json.dumps({"structuredContent": {"rows": list(range(5000))}}, indent=1).replace("\n", "\ndata: ")

    async def pretty(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        return await stream(request, b'data: {"id":%d,"result":%s}\n\n' % (message["id"], lines.encode()))

    async def main() -> None:
        async with talking("tools/call", pretty) as (channel, _):
            assert await call(channel) == {"rows": list(range(5000))}

    run(main())


def test_the_few_notices_of_a_flood_that_are_heard_do_not_make_it_useful(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(wire_channel, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    notice = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'

    class Heard:
        count = 0

        def notice(self, method: str, params: dict[str, Any]) -> None:
            self.count += 1

        def request(self, request_id: RequestId, method: str, params: bytes) -> bool:
            return False

    async def main() -> None:
        channel = HttpChannel("http://127.0.0.1/", headers={}, max_result_bytes=1024)
        channel.listener = heard = Heard()
        assert [channel.deliver(notice) for _ in range(1000)] == [True] * 499 + [False] * 501
        clock[0] += 1
        assert not any(channel.deliver(notice) for _ in range(1000))
        assert heard.count == 2 * 499
        clock[0] += 2
        assert channel.deliver(notice)
        await channel.close()

    run(main())
