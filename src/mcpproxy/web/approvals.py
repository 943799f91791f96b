"""`/ui/waiting`: what needs my decision about tools? What is new or different, what the scan says, and the decision."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.routing import Route

from mcpproxy.catalog.approval import version_of_all
from mcpproxy.catalog.changes import tool_label
from mcpproxy.catalog.trust_store import TrustStore
from mcpproxy.web.desk import Desk, desk_of, see
from mcpproxy.web.forms import form
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mcpproxy.catalog.approval import Waiting
    from mcpproxy.catalog.trust_store import Event

_MOST: Final = 100
_FEW: Final = 10
"""Of so many the earlier decisions are shown too."""
_HISTORY: Final = 20
_ORDER: Final = ("changed", "pending", "rejected")


class ServerWaiting(Struct, frozen=True, kw_only=True):
    """What waits of one server."""

    name: str
    version: str
    """Names all of it as it is shown: an approval of all repeats it."""
    undecided: int
    tools: list[WaitingShown]


class WaitingShown(Struct, frozen=True, kw_only=True):
    """One tool that waits."""

    waiting: Waiting
    label: str
    history: list[Event]


async def show(request: Request) -> Response:
    """What waits: all of it, that of one server, or one tool."""
    return await _page(request)


async def _page(request: Request, *, status: int = 200, **more: Any) -> Response:
    desk = desk_of(request)
    name, server = request.query_params.get("name", ""), request.query_params.get("server", "")
    snapshot = desk.rooms.house.catalog.snapshot
    if name and name not in snapshot.waiting:
        if snapshot.find(name) is not None:
            return see(url("/ui/tool", name=name, done=request.query_params.get("done")))
        raise HTTPException(404, f"Nothing named {name[:200]!r} waits for a decision.")
    chosen = [one for one in snapshot.waiting.values() if name in ("", one.id) and server in ("", one.server)]
    chosen.sort(key=lambda one: (_ORDER.index(one.state), one.id))
    histories = await asyncio.to_thread(_histories, desk, chosen if len(chosen) <= _FEW else [])
    groups = [
        ServerWaiting(
            name=each,
            version=version_of_all(snapshot.waiting_of(each)),
            undecided=sum(one.state != "rejected" for one in snapshot.waiting_of(each)),
            tools=[
                WaitingShown(waiting=one, label=tool_label(one.tool), history=histories.get(one.id, []))
                for one in chosen[:_MOST]
                if one.server == each
            ],
        )
        for each in dict.fromkeys(one.server for one in chosen[:_MOST])
    ]
    return desk.page(request, "waiting.html", status=status, groups=groups, more=len(chosen) - _MOST, name=name, **more)


def _histories(desk: Desk, chosen: list[Waiting]) -> dict[str, list[Event]]:
    store = TrustStore(desk.rooms.storage)
    return {one.id: store.history(one.server, one.tool, _HISTORY) for one in chosen}


def history_of(desk: Desk, server: str, tool: str) -> list[Event]:
    """The decisions about one tool, newest first. Reads the database: use it in a thread."""
    return TrustStore(desk.rooms.storage).history(server, tool, _HISTORY)


async def decide(request: Request) -> Response:
    """Approve or refuse exactly what was shown."""
    given = form(request)
    name, decision = given.get("name"), given.get("decision")
    if decision not in ("approve", "reject"):
        raise HTTPException(422, "Choose whether to approve or to refuse.")
    body = {"name": name, "version": given.get("version")}
    answer = await desk_of(request).rest.ask(request, "POST", f"/tools/{decision}", body)
    if answer.error is not None:
        return await _page(request, status=answer.status, problem=answer.error.message)
    left = bool(desk_of(request).rooms.house.catalog.snapshot.waiting)
    done = "tool_approved" if decision == "approve" else "tool_refused"
    return see(url("/ui/waiting" if left else "/ui/", done=done))


routes = [
    Route("/ui/waiting", show, methods=["GET"]),
    Route("/ui/waiting", decide, methods=["POST"]),
]
