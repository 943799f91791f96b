"""What can a server of 2024 do to us, with its one stream for everything and its address to post to?"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.http_servers import event, free_port, hang_up, serving, stream

from mcpproxy.wire.errors import (
    AnswerTooLarge,
    CallTimeout,
    ChannelClosed,
    HttpStatus,
    InvalidAnswer,
    Unauthorized,
    WireError,
)
from mcpproxy.wire.sse import SseChannel

LIMIT = 100_000


class SseUpstream:
    """A server with one event stream; `on_post` says what becomes of a message."""

    def __init__(self, endpoint: str = "/post?session=1") -> None:
        self.endpoint = endpoint
        self.posted: list[tuple[str, dict[str, Any]]] = []
        self.say: asyncio.Queue[bytes] = asyncio.Queue()
        self.on_post: Callable[[dict[str, Any]], int] = self.echo
        self.wants_key: str | None = None

    def echo(self, message: dict[str, Any]) -> int:
        if "id" in message:
            self.say.put_nowait(event({"id": message["id"], "result": message["params"]}))
        return 202

    def break_off(self, message: dict[str, Any]) -> int:
        self.say.put_nowait(b'data: {"id":%d,\n\n' % message["id"])
        return 202

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.wants_key is not None and request.headers.get("Authorization") != self.wants_key:
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        if request.method == "POST":
            message = await request.json()
            self.posted.append((request.path_qs, message))
            return web.Response(status=self.on_post(message))
        response = await stream(request, b"event: endpoint\ndata: %s\n\n" % self.endpoint.encode())
        while data := await self.say.get():
            await response.write(data)
        return response


@asynccontextmanager
async def talking(upstream: SseUpstream, credentials: Any = None) -> AsyncIterator[SseChannel]:
    """An open channel to a running server; no handshake is made."""
    async with serving(upstream.handle) as url:
        channel = SseChannel(url, headers={}, max_result_bytes=LIMIT, credentials=credentials)
        try:
            await channel.open()
            yield channel
        finally:
            await channel.close()
            upstream.say.put_nowait(b"")


async def call(channel: SseChannel, timeout: float = 20, **params: Any) -> Any:
    return json.loads(await channel.call_raw("x", json.dumps(params).encode(), timeout=timeout))


def test_many_calls_share_one_stream() -> None:
    async def main() -> None:
        upstream = SseUpstream()
        async with talking(upstream) as channel:
            answers = await asyncio.gather(*(call(channel, n=number) for number in range(50)))
            assert answers == [{"n": number} for number in range(50)]
            assert {path for path, _ in upstream.posted} == {"/post?session=1"}

    run(main())


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.1:1/post", "another host"),
        ("https://evil.example/post", "another host"),
        ("//evil.example/post", "another host"),
        ("file:///etc/passwd", "posted to"),
        ("mailto:someone", "no address"),
        ("http://[::1", "no address"),
    ],
)
def test_an_address_that_is_not_its_own_is_refused(endpoint: str, reason: str) -> None:
    async def main() -> None:
        upstream = SseUpstream(endpoint)
        with pytest.raises(InvalidAnswer, match=reason):
            async with talking(upstream):
                pass
        assert upstream.posted == []

    run(main())


def test_a_second_address_is_not_taken() -> None:
    async def main() -> None:
        upstream = SseUpstream()
        async with talking(upstream) as channel:
            upstream.say.put_nowait(b"event: endpoint\ndata: /other\n\n")
            await call(channel)
            await call(channel)
            assert {path for path, _ in upstream.posted} == {"/post?session=1"}

    run(main())


def test_an_answer_over_the_limit_fails_its_call_only() -> None:
    async def main() -> None:
        upstream = SseUpstream()
        async with talking(upstream) as channel:
            other = asyncio.create_task(call(channel, n=1))
            with pytest.raises(AnswerTooLarge):
                await call(channel, large="x" * 2 * LIMIT)
            assert await other == {"n": 1}
            assert await call(channel, n=2) == {"n": 2}

    run(main())


def test_a_broken_answer_fails_its_call_only() -> None:
    async def main() -> None:
        upstream = SseUpstream()
        async with talking(upstream) as channel:
            upstream.on_post = upstream.break_off
            with pytest.raises(InvalidAnswer):
                await call(channel)
            upstream.on_post = upstream.echo
            assert await call(channel, n=1) == {"n": 1}

    run(main())


@pytest.mark.parametrize("status", [307, 400, 404, 500])
def test_a_refused_message_fails_its_call_with_the_status_and_is_not_sent_again(status: int) -> None:
    async def main() -> None:
        upstream = SseUpstream()
        async with talking(upstream) as channel:
            upstream.on_post = lambda message: status
            with pytest.raises(HttpStatus, match=str(status)):
                await call(channel)
            assert len(upstream.posted) == 1

    run(main())


def test_a_stream_that_ends_fails_every_call_and_closes_the_channel() -> None:
    async def main() -> None:
        upstream = SseUpstream()
        async with talking(upstream) as channel:
            upstream.on_post = lambda message: 202
            waiting = asyncio.create_task(call(channel))
            await until(lambda: upstream.posted)
            upstream.say.put_nowait(b"")
            with pytest.raises(ChannelClosed, match="the event stream ended"):
                await waiting
            assert await channel.closed == "the event stream ended"

    run(main())


def test_a_call_that_is_never_answered_is_cancelled() -> None:
    async def main() -> None:
        upstream = SseUpstream()
        async with talking(upstream) as channel:
            upstream.on_post = lambda message: 202
            with pytest.raises(CallTimeout):
                await call(channel, timeout=0.2)
            await until(lambda: len(upstream.posted) == 2)
            assert upstream.posted[1][1]["method"] == "notifications/cancelled"

    run(main())


async def _plain(status: int) -> web.Response:
    return web.Response(status=status, text="hello")


@pytest.mark.parametrize(
    ("response", "fault", "reason"),
    [
        (lambda request: stream(request, b": nothing\n\n"), InvalidAnswer, "before it named an address"),
        (lambda request: _plain(404), HttpStatus, "404"),
        (lambda request: _plain(200), HttpStatus, "no event stream, but text/plain"),
        (lambda request: _plain(401), Unauthorized, "login"),
        (hang_up, ChannelClosed, "the event stream broke"),
    ],
)
def test_what_is_no_event_stream_says_why(response: Any, fault: type[WireError], reason: str) -> None:
    async def main() -> None:
        async with serving(response) as url:
            channel = SseChannel(url, headers={}, max_result_bytes=LIMIT)
            with pytest.raises(fault, match=reason):
                await channel.open()
            await channel.close()

    run(main())


def test_nobody_there_says_where() -> None:
    async def main() -> None:
        channel = SseChannel(f"http://127.0.0.1:{free_port()}/sse?key=secret", headers={}, max_result_bytes=LIMIT)
        with pytest.raises(ChannelClosed, match=r"^cannot reach http://127.0.0.1:\d+: ") as refused:
            await channel.open()
        assert "secret" not in str(refused.value)
        await channel.close()

    run(main())


def test_a_key_that_ran_out_is_renewed_for_the_stream_and_for_a_message() -> None:
    class Keys:
        number = 0

        async def header(self) -> str | None:
            return f"Bearer {self.number}"

        async def unauthorized(self, challenge: str | None) -> bool:
            self.number += 1
            return True

    async def main() -> None:
        upstream = SseUpstream()
        upstream.wants_key = "Bearer 1"
        async with talking(upstream, Keys()) as channel:
            assert await call(channel, n=1) == {"n": 1}
            upstream.wants_key = "Bearer 2"
            assert await call(channel, n=2) == {"n": 2}
            upstream.wants_key = "Bearer 9"
            with pytest.raises(Unauthorized):
                await call(channel)
            assert len(upstream.posted) == 2

    run(main())
