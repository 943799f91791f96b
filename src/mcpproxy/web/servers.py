"""`/ui/servers`: is everything connected? Each server's state, why, what to do next, and its log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.routing import Route

from mcpproxy.config.mask import masked
from mcpproxy.upstream.server import State
from mcpproxy.web.desk import Desk, desk_of, see
from mcpproxy.web.entry import command_line
from mcpproxy.web.forms import form
from mcpproxy.web.render import url
from mcpproxy.web.words import STATES, Look

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mcpproxy.api.services import Services
    from mcpproxy.upstream.server import Upstream

LOG_LINES: Final = 200
_TOOLS: Final = 200
_DONE: Final = {
    "enable": "enabled",
    "disable": "disabled",
    "restart": "restarted",
    "approve": "approved",
    "quarantine": "quarantined",
}


class ServerShown(Struct, frozen=True, kw_only=True):
    """One server on a page."""

    name: str
    state: str
    look: Look
    reason: str
    what: str
    """Its command line or address, secrets hidden."""
    protocol: str
    tools: int
    stale: bool
    waiting: int
    """How many of its tools wait for a decision."""
    seconds: float
    """For how long it has been so."""
    retry_at: float | None
    built_in: bool
    actions: tuple[str, ...]
    """What can be done with it, the likeliest first."""


def shown(rooms: Services, upstream: Upstream) -> ServerShown:
    """A server as the pages show it."""
    listing = rooms.house.catalog.snapshot.listings.get(upstream.name)
    built_in = all(server.name != upstream.name for server in rooms.loaded().config.servers)
    config = masked(upstream.server)
    return ServerShown(
        name=upstream.name,
        state=upstream.state.value,
        look=STATES[upstream.state],
        reason="" if upstream.state in _PLAIN else rooms.house.mask(upstream.reason),
        what=config["url"] or command_line(config),
        protocol=upstream.protocol or "",
        tools=len(listing.tools) if listing is not None else 0,
        stale=listing.stale if listing is not None else False,
        waiting=sum(one.state != "rejected" for one in rooms.house.catalog.snapshot.waiting_of(upstream.name)),
        seconds=time.time() - upstream.since,
        retry_at=upstream.retry_at,
        built_in=built_in,
        actions=_actions(upstream, built_in),
    )


# Where the state says it all.
_PLAIN: Final = (State.READY, State.DISABLED, State.QUARANTINED)


def _actions(upstream: Upstream, built_in: bool) -> tuple[str, ...]:
    match upstream.state:
        case State.DISABLED:
            found: tuple[str, ...] = ("enable",)
        case State.QUARANTINED:
            found = ("approve", "disable")
        case State.NEEDS_LOGIN:
            found = ("login", "restart", "disable")
        case _:
            found = ("restart", "disable", "quarantine")
    return tuple(action for action in found if not built_in or action in ("restart", "login"))


async def show_all(request: Request) -> Response:
    """Every server."""
    desk = desk_of(request)
    servers = [shown(desk.rooms, upstream) for upstream in desk.rooms.house.pool]
    return desk.page(request, "servers.html", servers=servers)


async def show(request: Request) -> Response:
    """One server."""
    return _page(request, desk_of(request).upstream(request.query_params.get("name", "")))


def _page(request: Request, upstream: Upstream, *, status: int = 200, **more: Any) -> Response:
    desk = desk_of(request)
    listing = desk.rooms.house.catalog.snapshot.listings.get(upstream.name)
    tools = sorted(listing.tools.values(), key=lambda tool: tool.name) if listing is not None else []
    context = {
        "server": shown(desk.rooms, upstream),
        "config": masked(upstream.server),
        "listing": listing,
        "tools": tools[:_TOOLS],
        "more_tools": max(0, len(tools) - _TOOLS),
        "log": [_line(line) for line in upstream.log.lines[-LOG_LINES:]],
        "live": url("/ui/live", log=upstream.name),
        "watched": upstream.name,
        "login_url": None,
    }
    return desk.page(request, "server.html", status=status, **context | more)


def _line(line: str) -> tuple[str, str, str]:
    """A line of a server's log: when, who speaks, and what is said."""
    moment, _, rest = line.partition(" ")
    mark, _, text = rest.partition(" ")
    return moment, "server" if mark == "!" else "proxy", text


async def act(request: Request) -> Response:
    """Enable, disable, restart, approve, quarantine, log in to or remove a server."""
    desk, given = desk_of(request), form(request)
    name, action = given.get("name"), given.get("action")
    upstream = desk.upstream(name)
    if action == "remove":
        return await _remove(request, desk, upstream)
    if action not in (*_DONE, "login"):
        raise HTTPException(422, f"There is no action {action[:32]!r}.")
    answer = await desk.rest.ask(request, "POST", f"/servers/{name}/{action}")
    if answer.error is not None:
        return _page(request, desk.upstream(name), status=answer.status, problem=answer.error.message)
    if action == "login":
        # Not a redirect: the person should see where the login leads before going there.
        return _page(request, upstream, login_url=answer.value()["login_url"])
    back = "/ui/servers" if given.get("back") == "list" else "/ui/server"
    return see(url(back, name=name if back == "/ui/server" else "", done=_DONE[action]))


async def _remove(request: Request, desk: Desk, upstream: Upstream) -> Response:
    answer = await desk.rest.ask(request, "DELETE", f"/servers/{upstream.name}")
    if answer.error is not None:
        return _page(request, upstream, status=answer.status, problem=answer.error.message)
    return see(url("/ui/servers", done="removed"))


routes = [
    Route("/ui/servers", show_all),
    Route("/ui/server", show),
    Route("/ui/server/act", act, methods=["POST"]),
]
