"""`/tools/explain`: why does a tool rank where it does for a question, or not appear at all?"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from mcpproxy.api.envelope import ApiError, Ok, ok
from mcpproxy.api.services import Rooms, Services, identity
from mcpproxy.catalog.hidden import why_hidden
from mcpproxy.catalog.search.explanation import absent
from mcpproxy.policy.access import Scope

router = APIRouter(tags=["tools"])


class MatchView(BaseModel):
    """One word of the question that the tool holds."""

    stem: str
    because: str = Field(description="`query`, `synonym` or `repair of …`")
    rarity: float = Field(description="How much a match on it says among these tools")
    fields: dict[str, float] = Field(description="What each field of the tool gave")


class ExplanationView(BaseModel):
    """The standing of one tool."""

    id: str = Field(examples=["github:create_issue"])
    shown: bool
    reason: str = Field(examples=["shown at rank 2"], description="Why it is shown, or why not")
    rank: int | None = Field(description="Its place among the tools that may be seen; null where it is no hit")
    exact: bool = Field(description="Whether the question names it")
    similarity: float | None = Field(description="How near it is in meaning, at most 1")
    evidence: dict[str, float] = Field(description="What each kind of evidence adds, in standard deviations")
    matches: list[MatchView]


class Explanations(BaseModel):
    """The best tools for a question, or the one that was asked about."""

    query: str
    tools: list[ExplanationView]


@router.get("/tools/explain", response_model=Ok[Explanations])
async def explain_search(
    request: Request,
    rooms: Rooms,
    *,
    q: Annotated[str, Query(min_length=1, max_length=10_000, description="The question")],
    limit: Annotated[int | None, Query(ge=1, le=100, description="Default: `tools_limit`")] = None,
    tool: Annotated[str | None, Query(max_length=1000, description="Only this one, a `server:tool` name")] = None,
    token: Annotated[str | None, Query(max_length=200, description="As the agent with this token sees it")] = None,
) -> dict[str, Any]:
    """Why the best tools for a question rank where they do, or why one does, or is not found."""
    config, house = rooms.loaded().config, rooms.house
    snapshot, scope = house.catalog.snapshot, _scope(request, rooms, token)

    def allow(tool_id: str) -> bool:
        found = snapshot.tools.get(tool_id)
        return found is not None and scope.sees_tool(found.server, found.name)

    if tool is None or allow(tool):
        found = await house.finder.explain(
            q, snapshot.tools, limit=limit or config.tools_limit, allow=allow, usage=house.usage, named=tool
        )
    else:
        waiting = snapshot.waiting.get(tool)
        why = why_hidden(tool, config.servers, snapshot.listings, waiting.state if waiting is not None else None)
        if tool in snapshot.tools:
            why = "it is not in the scope of the token"
        if why is None:
            raise ApiError(404, f"There is no tool {tool[:200]!r}: GET /tools lists what there is.", "UNKNOWN_TOOL")
        found = [absent(tool, why)]
    return ok(request, Explanations(query=q, tools=[ExplanationView(**msgspec.to_builtins(one)) for one in found]))


def _scope(request: Request, rooms: Services, token: str | None) -> Scope:
    if token is None:
        return identity(request).scope
    for one in rooms.tokens:
        if token in (one.id, one.name):
            return one.scope
    raise ApiError(404, f"There is no token {token[:64]!r}: GET /tokens lists what there is.")
