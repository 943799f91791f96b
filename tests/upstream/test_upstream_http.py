"""Do HTTP servers of every kind become ready, say when a login is missing, and survive a lost session?"""

import asyncio
import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from mcp.server.mcpserver import Context, MCPServer
from tests.support.children import run, until
from tests.support.houses import House, house
from tests.support.http_servers import HttpUpstream, answer, event, free_port, hang_up, in_a_thread, serving, stream

from mcpproxy.config.models import Server
from mcpproxy.upstream import server as life
from mcpproxy.upstream import watch
from mcpproxy.upstream.handshake import Era
from mcpproxy.upstream.server import NotReady, State
from mcpproxy.wire.errors import AnswerTooLarge, ChannelClosed, HttpStatus, Unauthorized

LIST_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 0.4)
    monkeypatch.setattr(watch, "RELIST_PAUSE", 0.05)


def at(url: str, **more: Any) -> Server:
    return Server(name="a", url=url, **more)


# The official server, in both eras and over both transports.


def sdk_server() -> MCPServer:
    """A real server whose list of tools grows when asked."""
    server = MCPServer("sdk", version="3")

    @server.tool()
    def add(x: int, y: int) -> dict[str, int]:
        return {"sum": x + y}

    @server.tool()
    async def grow(ctx: Context) -> dict[str, bool]:
        server.add_tool(add, name="grown")
        await ctx.notify_tools_changed()
        if ctx.request_context.protocol_version != "2026-07-28":
            await ctx.session.send_tool_list_changed()
        return {"grown": True}

    return server


@pytest.fixture
def sdk_http() -> Iterator[str]:
    with in_a_thread(sdk_server().streamable_http_app()) as origin:
        yield f"{origin}/mcp"


@pytest.fixture
def sdk_sse() -> Iterator[str]:
    with in_a_thread(sdk_server().sse_app()) as origin:
        yield f"{origin}/sse"


async def _works_and_grows(home: House, version: str) -> None:
    await home.ready()
    assert home.listings[-1].protocol_version == version
    assert home.listings[-1].server_version == "sdk 3"
    assert home.tools("a") == ["add", "grow"]
    sums = await asyncio.gather(*(home.call("a", "add", x=number, y=1) for number in range(20)))
    assert sums == [{"sum": number + 1} for number in range(20)]
    await asyncio.sleep(0.3)  # the listening stream opens after the server is ready
    assert await home.call("a", "grow") == {"grown": True}
    await until(lambda: home.tools("a") == ["add", "grow", "grown"], "the grown list is listed")
    assert home.states_of("a") == ["connecting", "ready"]


def test_the_official_server_over_http_in_the_modern_era(sdk_http: str) -> None:
    async def main() -> None:
        async with house(at(sdk_http)) as home:
            await _works_and_grows(home, "2026-07-28")
            assert home.server("a").protocol == "http"

    run(main())


def test_the_official_server_over_http_in_the_handshake_era(sdk_http: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "Era", functools.partial(Era, legacy=True))

    async def main() -> None:
        async with house(at(sdk_http)) as home:
            await _works_and_grows(home, "2025-11-25")

    run(main())


@pytest.mark.parametrize("protocol", ["sse", None])
def test_the_official_server_over_sse_told_or_detected(sdk_sse: str, protocol: Any) -> None:
    async def main() -> None:
        async with house(at(sdk_sse, protocol=protocol)) as home:
            await _works_and_grows(home, "2025-11-25")
            assert home.server("a").protocol == "sse"

    run(main())


# Which transport?


def test_a_server_that_is_told_to_be_http_is_not_tried_as_anything_else(sdk_sse: str) -> None:
    async def main() -> None:
        async with house(at(sdk_sse, protocol="http")) as home:
            assert "405" in await home.state("a", State.BACKING_OFF)

    run(main())


def test_what_was_learnt_is_found_out_again_when_it_no_longer_holds() -> None:
    """A server of the handshake era is replaced by one that knows only the modern one, at the same address."""

    async def main() -> None:
        modern = False
        upstream = HttpUpstream()
        old = upstream._refuse

        async def discover(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            if not modern:
                return await old(request, message)
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
            return answer(message, {**result, "ttlMs": 0, "cacheScope": "private"})

        async def initialize(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return await (old if modern else upstream._initialize)(request, message)

        upstream.on = {"server/discover": discover, "initialize": initialize}
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            assert home.listings[-1].protocol_version == "2025-11-25"
            modern = True
            await home.server("a").restart()
            await home.state("a", State.BACKING_OFF)
            await home.state("a", State.READY)
            assert home.listings[-1].protocol_version == "2026-07-28"

    run(main())


def test_a_server_that_was_down_at_first_is_still_asked_the_new_way() -> None:
    async def main() -> None:
        port = free_port()
        async with house(at(f"http://127.0.0.1:{port}/mcp")) as home:
            reason = await home.state("a", State.BACKING_OFF)
            assert reason.startswith(f"cannot reach http://127.0.0.1:{port}: ")
            await until(lambda: len(home.states) > 6)
            assert not home.server("a")._era.legacy

    run(main())


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (lambda: web.Response(status=500, text="boom"), "HTTP 500: boom"),
        (lambda: web.Response(status=307, headers={"Location": "https://x/"}), "redirects to https://x/"),
        (lambda: web.Response(text="<html>", content_type="text/html"), "text/html"),
    ],
)
def test_a_server_that_is_none_says_why(response: Any, reason: str) -> None:
    async def main() -> None:
        async def handle(request: web.Request) -> web.StreamResponse:
            made: web.Response = response()
            return made

        async with serving(handle) as url, house(at(url)) as home:
            assert reason in await home.state("a", State.BACKING_OFF)

    run(main())


# Logins.


class Door:
    """Credentials that a person has to get."""

    def __init__(self) -> None:
        self.key: str | None = None

    async def header(self) -> str | None:
        return self.key

    async def unauthorized(self, challenge: str | None) -> bool:
        return False

    async def login_link(self) -> str | None:
        return "https://login.example/"


def locked(upstream: HttpUpstream, *methods: str) -> Door:
    """Let the server refuse these methods without the right key."""
    known = {
        "initialize": upstream._initialize,
        "tools/list": upstream._list,
        "tools/call": upstream._call,
        "server/discover": upstream._refuse,
    }

    def guard(method: str) -> Any:
        async def handle(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            if request.headers.get("Authorization") != "Bearer good":
                return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
            return await known[method](request, message)

        return handle

    upstream.on = {method: guard(method) for method in methods}
    return Door()


def test_a_401_at_the_door_waits_for_a_person_and_goes_on_after_the_login() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        door = locked(upstream, "server/discover", "initialize")
        async with serving(upstream) as url, house(at(url), prepare=lambda home: home.logins.update(a=door)) as home:
            reason = await home.state("a", State.NEEDS_LOGIN)
            assert "mcpproxy upstream login a" in reason
            assert home.server("a").login_link == "https://login.example/"
            asked = len(upstream.seen)
            with pytest.raises(NotReady) as refused:
                await home.call("a", "echo")
            assert refused.value.state is State.NEEDS_LOGIN
            assert len(upstream.seen) == asked
            door.key = "Bearer good"
            home.server("a").wake()
            await home.state("a", State.READY)
            assert home.server("a").login_link is None

    run(main())


def test_a_401_without_credentials_needs_a_login_too() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        locked(upstream, "server/discover", "initialize")
        async with serving(upstream) as url, house(at(url)) as home:
            await home.state("a", State.NEEDS_LOGIN)
            assert home.server("a").login_link is None

    run(main())


def test_a_login_that_ends_while_connected_is_noticed_by_the_first_call() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            locked(upstream, "tools/call", "tools/list", "initialize", "server/discover")
            with pytest.raises(Unauthorized):
                await home.call("a", "echo")
            await home.state("a", State.NEEDS_LOGIN)

    run(main())


def test_a_tool_that_wants_more_rights_does_not_take_the_server_down() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            locked(upstream, "tools/call")
            with pytest.raises(Unauthorized):
                await home.call("a", "echo")
            await until(lambda: len(home.listings) == 2)
            assert home.states_of("a") == ["connecting", "ready"]

    run(main())


# Sessions.


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


# What the server says on its own.


def test_a_change_told_on_the_listening_stream_is_listed() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        upstream.streams = True
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            upstream.tools = [{"name": "new", "inputSchema": {"type": "object"}}]
            upstream.say.put_nowait(event(LIST_CHANGED))
            await until(lambda: home.tools("a") == ["new"])
            (listening,) = [seen for seen in upstream.seen if seen.verb == "GET"]
            assert listening.headers["Mcp-Session-Id"] == "s1"
            assert listening.headers.getall("MCP-Protocol-Version") == ["2025-11-25"]
            upstream.say.put_nowait(b"")

    run(main())


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_modern_server_that_refuses_to_be_listened_to_stays_ready(status: int) -> None:
    async def main() -> None:
        upstream = HttpUpstream()

        async def discover(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
            return answer(message, {**result, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})

        async def refuse(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=status)

        upstream.on = {"server/discover": discover, "subscriptions/listen": refuse}
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            assert home.listings[-1].protocol_version == "2026-07-28"
            await until(lambda: upstream.messages("subscriptions/listen"))
            assert await home.call("a", "echo", x=1) == {"x": 1}
            await asyncio.sleep(0.2)
            assert home.states_of("a") == ["connecting", "ready"]
            call = upstream.messages("tools/call")[0]
            assert (call.headers["Mcp-Method"], call.headers["Mcp-Name"]) == ("tools/call", "echo")
            assert call.headers.getall("MCP-Protocol-Version") == ["2026-07-28"]

    run(main())


def test_the_ping_of_an_http_server_that_is_gone_brings_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PING_EVERY", 0.1)

    async def main() -> None:
        upstream = HttpUpstream()
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()

            async def forget(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
                return web.Response(status=404)

            upstream.on["ping"] = forget
            assert "no longer knows our session" in await home.state("a", State.BACKING_OFF)
            upstream.on.clear()
            await home.state("a", State.READY)
            assert upstream.sessions == 2

    run(main())
