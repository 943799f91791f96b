"""A stream that ends early is taken up again where it was, for an answer as for what the server says on its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.http_servers import HttpUpstream, event, hang_up, stream
from tests.wire.http_talk import CALL, MIB, call, result_event, talking

from mcpproxy.wire.dispatch import ChannelDispatcher
from mcpproxy.wire.errors import ChannelClosed, HttpStatus, SessionExpired

# Streams that end early.


def resumable(*, retry: int = 1, polls: int = 1, end: str = "close") -> HttpUpstream:
    """A server that ends its stream before the answer, `polls` times, and goes on where it was told to."""
    upstream = HttpUpstream()
    waiting: dict[str, Any] = {}

    async def begin(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        waiting.update(message=message, polls=polls)
        response = await stream(request, b"id: e0\nretry: %d\ndata:\n\n" % retry)
        if end == "break":  # in the middle of the next event, whose id is therefore not to be resumed from
            await response.write(b'id: e1\ndata: {"half":')
            return await hang_up(request)
        return response

    async def go_on(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        waiting["polls"] -= 1
        number = int(request.headers["Last-Event-ID"].removeprefix("e"))
        if waiting["polls"]:
            return await stream(request, b"id: e%d\ndata:\n\n" % (number + 1))
        return await stream(request, result_event(waiting["message"], f"e{number + 1}", resumed=number))

    upstream.on = {CALL: begin, "GET": go_on}
    return upstream


@pytest.mark.parametrize("end", ["close", "break"])
def test_a_stream_that_ends_early_is_resumed_after_its_last_whole_event(end: str) -> None:
    async def main() -> None:
        upstream = resumable(end=end)
        async with talking(upstream) as channel:
            assert await call(channel) == {"resumed": 0}
        assert [seen.verb for seen in upstream.seen] == ["POST", "GET"]
        assert upstream.seen[1].headers["Accept"] == "text/event-stream"

    run(main())


def test_a_stream_may_be_resumed_as_often_as_it_gets_on() -> None:
    async def main() -> None:
        upstream = resumable(polls=12, retry=0)
        async with talking(upstream) as channel:
            assert await call(channel) == {"resumed": 11}

    run(main())


def test_a_stream_that_gets_nowhere_is_given_up() -> None:
    async def main() -> None:
        upstream = resumable()

        async def nothing(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return await stream(request, b": nothing new\n\n")

        upstream.on["GET"] = nothing
        async with talking(upstream) as channel:
            with pytest.raises(ChannelClosed, match="ended before the answer came"):
                await call(channel)
        assert len(upstream.seen) == 6

    run(main())


@pytest.mark.parametrize("status", [404, 405, 500])
def test_a_stream_that_cannot_be_resumed_never_looks_like_a_call_that_was_not_made(status: int) -> None:
    async def main() -> None:
        upstream = resumable()

        async def lost(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=status)

        upstream.on["GET"] = lost
        async with talking(upstream) as channel:
            await channel.call_raw("initialize", b'{"protocolVersion":"2025-11-25"}', timeout=20)
            with pytest.raises((ChannelClosed, HttpStatus)) as failed:
                await call(channel)
            assert not isinstance(failed.value, SessionExpired)

    run(main())


# The listening stream.


@contextlib.asynccontextmanager
async def listening(upstream: HttpUpstream) -> AsyncIterator[list[str]]:
    """The methods of what a server says on its own."""
    told: list[str] = []

    async def on_request(_context: object, _method: str, _params: Any) -> dict[str, Any]:
        return {}

    async def on_notify(_context: object, method: str, _params: Any) -> None:
        told.append(method)

    upstream.streams = True
    async with talking(upstream) as channel:
        tasks = [
            asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify)),
            asyncio.create_task(channel.listen()),
        ]
        yield told
        for task in tasks:
            task.cancel()


def test_what_the_server_says_on_its_own_is_heard_and_the_stream_is_taken_up_again() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with listening(upstream) as told:
            upstream.say.put_nowait(b"retry: 1\n" + event({"method": "one"}, "e1"))
            await until(lambda: told == ["one"])
            upstream.say.put_nowait(b'id: e2\ndata: {"method":"half')
            upstream.say.put_nowait(b"")  # ends the stream
            await until(lambda: len(upstream.seen) == 2)
            assert upstream.seen[1].headers["Last-Event-ID"] == "e1"
            upstream.say.put_nowait(event({"method": "two"}, "e2"))
            await until(lambda: told == ["one", "two"])

    run(main())


def test_an_oversized_event_does_not_end_the_listening_stream() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with listening(upstream) as told:
            upstream.say.put_nowait(event({"method": "large", "params": {"x": "x" * (2 * MIB)}}))
            upstream.say.put_nowait(event({"method": "small"}))
            await until(lambda: told == ["small"])
            assert len(upstream.seen) == 1

    run(main())


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_without_a_listening_stream_is_asked_once(status: int) -> None:
    async def main() -> None:
        upstream = HttpUpstream()

        async def refuse(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=status)

        upstream.on["GET"] = refuse
        async with talking(upstream) as channel:
            await channel.listen()
        assert len(upstream.seen) == 1

    run(main())


def test_a_stream_that_ends_at_once_with_a_retry_of_zero_is_not_asked_without_a_break() -> None:
    async def main() -> None:
        upstream = HttpUpstream()

        async def end(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return await stream(request, b"retry: 0\n\n")

        upstream.on["GET"] = end
        async with talking(upstream) as channel:
            listening = asyncio.create_task(channel.listen())
            await asyncio.sleep(0.5)
            listening.cancel()
        assert len(upstream.seen) <= 7

    run(main())


def test_a_listening_stream_survives_a_fault_of_the_server() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        faults = [web.Response(status=502), web.Response(status=405)]

        async def refuse(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return faults.pop(0)

        upstream.on["GET"] = refuse
        async with talking(upstream) as channel:
            await channel.listen()
        assert len(upstream.seen) == 2

    run(main())
