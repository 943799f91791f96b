"""`/ui/tools`: which tools are there, and which would an agent find? The list, and the search of retrieve_tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from starlette.routing import Route

from mcpproxy.catalog.search.signature import first_sentence
from mcpproxy.policy.annotations import call_with, effective_hints
from mcpproxy.web import words
from mcpproxy.web.desk import Desk, desk_of
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mcpproxy.catalog.tool import Tool

PAGE: Final = 50
_MOST_HITS: Final = 100
_LONGEST_QUERY: Final = 1000


class ToolShown(Struct, frozen=True, kw_only=True):
    """One tool in a list."""

    id: str
    server: str
    name: str
    title: str
    about: str
    kind: words.Look
    call_with: str
    stale: bool
    score: float | None = None


class Wanted(Struct, frozen=True, kw_only=True):
    """Which tools are asked for."""

    q: str = ""
    server: str = ""
    kind: str = ""
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
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
        )


async def show(request: Request) -> Response:
    """The tools, or those that fit a question, best first."""
    desk, wanted = desk_of(request), Wanted.read(request)
    everything = desk.rooms.house.catalog.snapshot.tools
    found, total = await _search(desk, wanted) if wanted.q else _listed(desk, wanted)
    last = max(1, -(-total // PAGE))
    pages = {
        side: url("/ui/tools", server=wanted.server, kind=wanted.kind, page=number)
        for side, number in (("before", wanted.page - 1), ("after", wanted.page + 1))
        if not wanted.q and 1 <= number <= last
    }
    return desk.page(
        request,
        "tools.html",
        wanted=wanted,
        tools=found,
        total=total,
        everything=len(everything),
        pages=pages,
        last=last,
        servers=sorted(desk.rooms.house.catalog.snapshot.listings),
        limit=desk.rooms.loaded().config.tools_limit,
    )


def _passes(desk: Desk, wanted: Wanted, tool: Tool) -> bool:
    if wanted.server and tool.server != wanted.server:
        return False
    settings = desk.rooms.loaded().config.intent_declaration
    return not wanted.kind or effective_hints(tool.annotations, settings).kind == wanted.kind


def _listed(desk: Desk, wanted: Wanted) -> tuple[list[ToolShown], int]:
    tools = desk.rooms.house.catalog.snapshot.tools
    found = sorted((tool for tool in tools.values() if _passes(desk, wanted, tool)), key=lambda tool: tool.id)
    start = (wanted.page - 1) * PAGE
    return [shown(desk, tool) for tool in found[start : start + PAGE]], len(found)


async def _search(desk: Desk, wanted: Wanted) -> tuple[list[ToolShown], int]:
    house = desk.rooms.house
    snapshot = house.catalog.snapshot

    def allow(tool_id: str) -> bool:
        tool = snapshot.tools.get(tool_id)
        return tool is not None and _passes(desk, wanted, tool)

    hits = await house.finder.search(wanted.q, _MOST_HITS, allow, house.usage)
    return [shown(desk, snapshot.tools[hit.id], hit.score) for hit in hits.best], hits.total


def shown(desk: Desk, tool: Tool, score: float | None = None) -> ToolShown:
    """A tool as the lists show it."""
    hints = effective_hints(tool.annotations, desk.rooms.loaded().config.intent_declaration)
    listing = desk.rooms.house.catalog.snapshot.listings.get(tool.server)
    return ToolShown(
        id=tool.id,
        server=tool.server,
        name=tool.name,
        title=tool.title,
        about=first_sentence(tool.description or tool.title),
        kind=words.KINDS[hints.kind],
        call_with=call_with(hints),
        stale=listing is not None and listing.stale,
        score=score,
    )


routes = [Route("/ui/tools", show)]
