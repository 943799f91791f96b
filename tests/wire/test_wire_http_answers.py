"""An answer that is none, or too large, fails its own call with what is wrong with it."""

import asyncio
import gzip
import zlib
from typing import Any

import psutil
import pytest
from aiohttp import web
from tests.support.children import run
from tests.support.http_servers import event, raw_answer, stream
from tests.wire.http_talk import MIB, call, replying, talking

from mcpproxy.wire.errors import AnswerTooLarge, ChannelClosed, InvalidAnswer

# Answers that are none.


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (b"<html>", "text/html", "content type is 'text/html'"),
        (b"", "application/octet-stream", "content type is 'application/octet-stream'"),
        (b"<html>", "application/json", "not JSON"),
        (b'{"id":1,"result":"\xff"}', "application/json", "not valid UTF-8"),
        (b"", "application/json", "not JSON"),
        (b'{"id":999,"result":{}}', "application/json", "does not answer the request"),
        (b"[]", "application/json", "does not answer the request"),
        (b'{"id":1}', "application/json", "neither a result nor an error"),
        (b"data: {\n\n", "text/event-stream", "ended before the answer came"),
        (b"", "text/event-stream", "ended before the answer came"),
    ],
)
def test_an_answer_that_is_none_says_what_is_wrong(body: bytes, kind: str, reason: str) -> None:
    async def main() -> None:
        async with talking(replying(lambda request, message: web.Response(body=body, content_type=kind))) as channel:
            with pytest.raises((InvalidAnswer, ChannelClosed), match=reason):
                await call(channel)

    run(main())


# Size.


async def _endless(request: web.Request, kind: str, piece: bytes, encoding: str = "") -> web.StreamResponse:
    headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    while True:
        await response.write(piece)


@pytest.mark.parametrize(
    "respond",
    [
        lambda request, message: raw_answer(message, b'"' + b"x" * (2 * MIB) + b'"'),
        lambda request, message: _endless(request, "application/json", b"x" * 65536),
        lambda request, message: _endless(request, "text/event-stream", b"data: " + b"x" * 65536),
        lambda request, message: _endless(request, "text/event-stream", b"data:\n" * 10_000),
        lambda request, message: _endless(request, "text/event-stream", b"data: x\n" * 10_000),
        lambda request, message: stream(request, event(b'{"id":%d,"result":"%s"}' % (message["id"], b"x" * (2 * MIB)))),
    ],
    ids=["length", "chunked", "endless event", "endless empty lines", "endless short lines", "event"],
)
def test_an_answer_over_the_limit_fails_its_call_only(respond: Any) -> None:
    async def main() -> None:
        upstream = replying(respond)
        async with talking(upstream) as channel:
            with pytest.raises(AnswerTooLarge):
                await call(channel)
            upstream.on.clear()
            assert await call(channel, a=1) == {"a": 1}

    run(main())


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_compressed_bomb_costs_little_more_than_the_limit(encoding: str, streamed: bool) -> None:
    size = 100 * MIB
    inner = b'data: {"id":1,"result":"' + b"x" * size if streamed else b'{"id":1,"result":"' + b"x" * size
    bomb = gzip.compress(inner, 1) if encoding == "gzip" else zlib.compress(inner, 1)
    del inner
    kind = "text/event-stream" if streamed else "application/json"

    def respond(request: web.Request, message: dict[str, Any]) -> web.Response:
        return web.Response(body=bomb, content_type=kind, headers={"Content-Encoding": encoding})

    async def main() -> None:
        async with talking(replying(respond)) as channel:
            await channel.call_raw("ping", b"{}", timeout=20)
            us = psutil.Process()
            before, most = us.memory_info().rss, 0
            lost = asyncio.create_task(call(channel))
            while not lost.done():
                most = max(most, us.memory_info().rss)
                await asyncio.sleep(0)
            with pytest.raises((AnswerTooLarge, ChannelClosed)):
                await lost
            assert most - before < 48 * MIB

    run(main())
