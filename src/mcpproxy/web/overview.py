"""`/ui/`: is everything connected, what are my agents doing, what needs my decision?"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.routing import Route

from mcpproxy.activity.filters import Filter
from mcpproxy.activity.query import list_records
from mcpproxy.config.foreign import files_of
from mcpproxy.upstream.server import State
from mcpproxy.web.chart import chart_of
from mcpproxy.web.desk import Desk, desk_of
from mcpproxy.web.records import Row, row_of
from mcpproxy.web.servers import shown
from mcpproxy.web.words import STATES

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_RECENT = 8
_MOST_SERVERS = 12
_URGENCY = {"bad": 0, "wait": 1, "good": 2, "off": 3}


async def show(request: Request) -> Response:
    """The three answers."""
    desk = desk_of(request)
    rooms = desk.rooms
    await desk.schemas.look(rooms.house.catalog.snapshot)
    pace, slow, recent = await asyncio.gather(desk.pace.get(), desk.slowest.get(), asyncio.to_thread(_recent, desk))
    foreign = [] if list(rooms.house.pool) else await asyncio.to_thread(files_of, Path.home())
    servers = list(rooms.house.pool)
    states = Counter(upstream.state for upstream in servers)
    return desk.page(
        request,
        "overview.html",
        servers=sorted((shown(rooms, upstream) for upstream in servers), key=lambda server: _URGENCY[server.look.tone]),
        most=_MOST_SERVERS,
        states=[(STATES[state], states[state]) for state in map(State, STATES) if states[state]],
        ready=states[State.READY],
        expected=sum(count for state, count in states.items() if state is not State.DISABLED),
        tools=len(rooms.house.catalog.snapshot.tools),
        sessions=rooms.sessions(),
        waiting_for=desk.decisions(),
        chart=chart_of(pace),
        statuses=pace.by_status,
        total=pace.total,
        slow=slow,
        recent=recent,
        foreign=foreign,
        endpoint=f"{request.url.scheme}://{request.url.netloc}/mcp",
        key_needed=rooms.loaded().config.mcp_auth_required,
    )


def _recent(desk: Desk) -> list[Row]:
    found = list_records(desk.rooms.storage, Filter(type="tool_call"), _RECENT)
    return [row_of(record) for record in found.activities]


routes = [Route("/ui/", show)]
