"""`/ui/tools`: which tools are there, and which would an agent find? The list, and the search of retrieve_tools."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from starlette.routing import Route

from mcpproxy.catalog.search.signature import first_sentence
from mcpproxy.catalog.tool import BadDefinition, Tool, parse_tool
from mcpproxy.catalog.withheld import count_matching
from mcpproxy.policy.annotations import effective_hints
from mcpproxy.web import words
from mcpproxy.web.desk import Desk, desk_of
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mcpproxy.catalog.approval import State, Waiting

PAGE: Final = 50
_MOST_HITS: Final = 100
_LONGEST_QUERY: Final = 1000
APPROVALS: Final = {"approved": "approved", "waiting": "waiting for you", "rejected": "refused"}


class ToolShown(Struct, frozen=True, kw_only=True):
    """One tool in a list."""

    id: str
    server: str
    name: str
    about: str
    kind: words.Look
    stale: bool
    waits: words.Look | None = None
    """Why agents do not see it; None where they do."""
    score: float | None = None


class Wanted(Struct, frozen=True, kw_only=True):
    """Which tools are asked for."""

    q: str = ""
    server: str = ""
    kind: str = ""
    approval: str = ""
    page: int = 1

    @classmethod
    def read(cls, request: Request) -> Wanted:
        """What the address says."""
        query = request.query_params
        page = query.get("page", "1")
        return cls(
            q=query.get("q", "").strip()[:_LONGEST_QUERY],
            server=query.get("server", ""),
            kind=query.get("kind", "") if query.get("kind") in words.KINDS else "",
            approval=query.get("approval", "") if query.get("approval") in APPROVALS else "",
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
        )


async def show(request: Request) -> Response:
    """The tools, or those that fit a question, best first."""
    desk, wanted = desk_of(request), Wanted.read(request)
    snapshot = desk.rooms.house.catalog.snapshot
    found, total = await _search(desk, wanted) if wanted.q else _listed(desk, wanted)
    undecided = [one for one in snapshot.waiting.values() if one.state != "rejected" and one.tool]
    last = max(1, -(-total // PAGE))
    pages = {
        side: url("/ui/tools", server=wanted.server, kind=wanted.kind, approval=wanted.approval, page=number)
        for side, number in (("before", wanted.page - 1), ("after", wanted.page + 1))
        if not wanted.q and 1 <= number <= last
    }
    return desk.page(
        request,
        "tools.html",
        wanted=wanted,
        tools=found,
        total=total,
        everything=len(snapshot.tools) + sum(bool(one.tool) for one in snapshot.waiting.values()),
        withheld=count_matching(undecided, wanted.q) if wanted.q else 0,
        approvals=APPROVALS,
        pages=pages,
        last=last,
        servers=sorted(snapshot.listings),
        limit=desk.rooms.loaded().config.tools_limit,
    )


def _passes(desk: Desk, wanted: Wanted, tool: Tool) -> bool:
    if wanted.server and tool.server != wanted.server:
        return False
    settings = desk.rooms.loaded().config.intent_declaration
    return not wanted.kind or effective_hints(tool.annotations, settings).kind == wanted.kind


def _listed(desk: Desk, wanted: Wanted) -> tuple[list[ToolShown], int]:
    snapshot = desk.rooms.house.catalog.snapshot
    found: list[tuple[Tool, State | None]] = []
    if wanted.approval in ("", "approved"):
        found += ((tool, None) for tool in snapshot.tools.values())
    if wanted.approval != "approved":
        found += _waiting(snapshot.waiting.values(), wanted.approval)
    passing = sorted((each for each in found if _passes(desk, wanted, each[0])), key=lambda each: each[0].id)
    start = (wanted.page - 1) * PAGE
    return [shown(desk, tool, state=state) for tool, state in passing[start : start + PAGE]], len(passing)


def _waiting(waiting: Iterable[Waiting], approval: str) -> Iterator[tuple[Tool, State]]:
    """The tools that agents do not see, as their servers list them now."""
    for one in waiting:
        refused = one.state == "rejected"
        if one.tool and approval in ("", "rejected" if refused else "waiting"):
            with contextlib.suppress(BadDefinition):
                yield parse_tool(one.server, one.live), one.state


async def _search(desk: Desk, wanted: Wanted) -> tuple[list[ToolShown], int]:
    house = desk.rooms.house
    snapshot = house.catalog.snapshot

    def allow(tool_id: str) -> bool:
        tool = snapshot.tools.get(tool_id)
        return tool is not None and _passes(desk, wanted, tool)

    hits = await house.finder.search(wanted.q, _MOST_HITS, allow, house.usage)
    return [shown(desk, snapshot.tools[hit.id], hit.score) for hit in hits.best], hits.total


def shown(desk: Desk, tool: Tool, score: float | None = None, state: State | None = None) -> ToolShown:
    """A tool as the lists show it."""
    hints = effective_hints(tool.annotations, desk.rooms.loaded().config.intent_declaration)
    listing = desk.rooms.house.catalog.snapshot.listings.get(tool.server)
    return ToolShown(
        id=tool.id,
        server=tool.server,
        name=tool.name,
        about=first_sentence(tool.description or tool.title),
        kind=words.KINDS[hints.kind],
        stale=listing is not None and listing.stale,
        waits=words.WAITING[state] if state is not None else None,
        score=score,
    )


routes = [Route("/ui/tools", show)]
