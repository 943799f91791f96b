"""A call over HTTP is carried out once, whatever becomes of its session, its stream or its server."""

import asyncio
import contextlib
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.houses import house
from tests.support.http_servers import HttpUpstream, answer, event, hang_up, serving, stream
from tests.upstream.quick_lives import LIST_CHANGED, at, quick_lists

from mcpproxy.upstream.server import State
from mcpproxy.wire.errors import AnswerTooLarge, ChannelClosed, HttpStatus

__all__ = ["quick_lists"]


def forgetful(upstream: HttpUpstream) -> list[str]:
    """Let the server know no session but the last one; gives the sessions of the calls that it carried out."""
    done: list[str] = []

    async def handle(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        session = request.headers.get("Mcp-Session-Id", "")
        if session != f"s{upstream.sessions}" or session in forgotten:
            await asyncio.sleep(0.02 * message["params"]["arguments"]["n"])  # some hear of it later than others
            return web.Response(status=404)
        done.append(session)
        return await upstream._call(request, message)

    forgotten = {"s1"}
    upstream.on["tools/call"] = handle
    return done


def test_a_lost_session_is_made_anew_and_every_call_is_carried_out_once() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        done = forgetful(upstream)
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            answers = await asyncio.gather(*(home.call("a", "echo", n=number) for number in range(10)))
            assert answers == [{"n": number} for number in range(10)]
            assert done == ["s2"] * 10
            assert len(upstream.messages("tools/call")) == 20
            assert len(upstream.messages("initialize")) == 2

    run(main())


def test_a_server_that_forgets_every_session_is_asked_no_more_than_twice() -> None:
    async def main() -> None:
        upstream = HttpUpstream()

        async def forget(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=404)

        upstream.on["tools/call"] = forget
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            with pytest.raises(HttpStatus, match="no longer knows our session"):
                await home.call("a", "echo")
            assert len(upstream.messages("tools/call")) == 2

    run(main())


def test_a_call_whose_stream_was_lost_with_the_session_is_not_made_again() -> None:
    async def main() -> None:
        upstream = HttpUpstream()

        async def begin(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return await stream(request, b"id: e1\nretry: 1\ndata:\n\n")

        async def forget(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=404)

        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            upstream.on = {"tools/call": begin, "GET": forget}
            with pytest.raises(ChannelClosed, match="the server lost the call's stream"):
                await home.call("a", "echo")
            assert len(upstream.messages("tools/call")) == 1

    run(main())


@pytest.mark.parametrize(
    ("respond", "fault"),
    [
        (lambda request, message: hang_up(request), ChannelClosed),
        (lambda request, message: _status(307), HttpStatus),
        (lambda request, message: _status(500), HttpStatus),
        (lambda request, message: _large(message), AnswerTooLarge),
    ],
)
def test_a_call_that_fails_is_made_once_and_costs_nothing_else(respond: Any, fault: type[Exception]) -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            upstream.on["tools/call"] = respond
            with pytest.raises(fault):
                await home.call("a", "echo")
            assert len(upstream.messages("tools/call")) == 1
            upstream.on.clear()
            assert await home.call("a", "echo", x=1) == {"x": 1}
            assert home.states_of("a") == ["connecting", "ready"]

    run(main())


async def _status(status: int) -> web.Response:
    return web.Response(status=status, headers={"Location": "/elsewhere"})


async def _large(message: dict[str, Any]) -> web.Response:
    return answer(message, "x" * 40_000_000)


def test_after_a_call_that_broke_the_server_is_asked_whether_it_is_still_there() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            upstream.on["tools/call"] = lambda request, message: hang_up(request)
            with pytest.raises(ChannelClosed):
                await home.call("a", "echo")
            await until(lambda: len(home.listings) == 2)
            assert home.states_of("a") == ["connecting", "ready"]

    run(main())


def test_a_server_that_went_down_is_noticed_by_the_first_call() -> None:
    async def main() -> None:
        async with contextlib.AsyncExitStack() as site:
            url = await site.enter_async_context(serving(HttpUpstream()))
            async with house(at(url)) as home:
                await home.ready()
                await site.aclose()
                with pytest.raises(ChannelClosed, match=r"cannot reach|broke"):
                    await home.call("a", "echo")
                assert "cannot reach" in await home.state("a", State.BACKING_OFF)
                assert home.stale("a")

    run(main())


def test_a_call_under_way_outlives_a_list_that_failed() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        upstream.streams = True
        going_on = asyncio.Event()

        async def slow(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            await going_on.wait()
            return answer(message, {"structuredContent": "done"})

        async def fail(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=503)

        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            upstream.on = {"tools/call": slow, "tools/list": fail}
            calling = asyncio.create_task(home.call("a", "echo"))
            await until(lambda: upstream.messages("tools/call"))
            upstream.say.put_nowait(event(LIST_CHANGED))
            await until(lambda: any("could not be listed again" in line for line in home.server("a").log.lines))
            del upstream.on["tools/list"]
            going_on.set()
            assert await calling == "done"
            await until(lambda: len(home.listings) == 2)
            assert home.states_of("a") == ["connecting", "ready"]
            upstream.say.put_nowait(b"")

    run(main())
