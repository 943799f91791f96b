"""Do HTTP servers of every kind become ready, and is what they say on their own heard?"""

import asyncio
import functools
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from mcp.server.mcpserver import Context, MCPServer
from tests.support.children import run, until
from tests.support.houses import House, house
from tests.support.http_servers import HttpUpstream, answer, event, free_port, in_a_thread, serving
from tests.upstream.quick_lives import LIST_CHANGED, at, quick_lists

from mcpproxy.upstream import server as life
from mcpproxy.upstream import watch
from mcpproxy.upstream.handshake import Era
from mcpproxy.upstream.server import State

__all__ = ["quick_lists"]


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


async def discover(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """A modern server that tells of changes."""
    result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
    return answer(message, {**result, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})


def test_what_changes_before_a_modern_server_is_listened_to_is_not_missed() -> None:
    async def main() -> None:
        upstream, changed, over = HttpUpstream(), asyncio.Event(), asyncio.Event()

        async def subscribe(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            await changed.wait()
            meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
            params = {"_meta": meta, "notifications": message["params"]["notifications"]}
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            told = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
            await response.write(event(told))
            await over.wait()
            return response

        upstream.on = {"server/discover": discover, "subscriptions/listen": subscribe}
        async with serving(upstream) as url, house(at(url)) as home:
            await home.ready()
            await until(lambda: upstream.messages("subscriptions/listen"))
            upstream.tools = [{"name": "new", "inputSchema": {"type": "object"}}]
            changed.set()
            await until(lambda: home.tools("a") == ["new"])
            over.set()

    run(main())


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_modern_server_that_refuses_to_be_listened_to_stays_ready(status: int) -> None:
    async def main() -> None:
        upstream = HttpUpstream()

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
