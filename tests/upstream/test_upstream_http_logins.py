"""A server that wants a login says so, waits for a person, and goes on after it."""

from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.houses import house
from tests.support.http_servers import HttpUpstream, serving
from tests.upstream.quick_lives import at, quick_lists

from mcpproxy.upstream.server import NotReady, State
from mcpproxy.wire.errors import Unauthorized

__all__ = ["quick_lists"]


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
