"""`/tools/waiting`, `/tools/approve`, `/tools/reject`: what needs an operator's decision, and the decision."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from mcpproxy.api.envelope import ApiError, Ok, ok, request_id
from mcpproxy.api.services import Rooms, Services, identity, source
from mcpproxy.catalog.approval import Waiting, version_of_all
from mcpproxy.catalog.catalog import VersionChanged
from mcpproxy.catalog.changes import tool_label
from mcpproxy.catalog.guard import NothingToDecide
from mcpproxy.catalog.shown import escaped

router = APIRouter(prefix="/tools", tags=["tools"])


class DifferenceView(BaseModel):
    """One thing that is not as it was approved; every text is escaped."""

    path: str
    kind: str
    before: str | None = None
    after: str | None = None
    loud: bool = Field(description="Whether it changes what the tool may do or take, rather than how it speaks")


class FindingView(BaseModel):
    """One remark of the scan; every text is escaped."""

    rule: str
    severity: Literal["low", "medium", "high"]
    where: str
    excerpt: str
    why: str


class WaitingView(BaseModel):
    """A tool that no agent sees until an operator decides."""

    name: str = Field(description="server:tool; ends with the colon for a server's instructions")
    label: str
    server: str
    state: Literal["pending", "changed", "rejected"]
    version: str = Field(description="Names exactly this version: an approval repeats it")
    differences: list[DifferenceView]
    findings: list[FindingView]
    definition: str = Field(description="The whole definition as the server sends it now, escaped")


class WaitingList(BaseModel):
    """Everything that waits, and for each server the version that an approval of all of it repeats."""

    waiting: list[WaitingView]
    servers: dict[str, str]


class Decision(BaseModel):
    """What was looked at, and is decided about."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="server:tool, or a server alone for all that waits on it", examples=["github:search"])
    version: str = Field(description="The version that was shown")


class Decided(BaseModel):
    """What was decided."""

    name: str
    decision: Literal["approved", "rejected"]


def _view(waiting: Waiting) -> WaitingView:
    return WaitingView(
        name=waiting.id,
        label=tool_label(waiting.tool),
        server=waiting.server,
        state=waiting.state,
        version=waiting.hash,
        differences=[
            DifferenceView(path=one.path, kind=one.kind, before=one.before, after=one.after, loud=one.loud)
            for one in waiting.differences
        ],
        findings=[
            FindingView(rule=one.rule, severity=one.severity, where=one.where, excerpt=one.excerpt, why=one.why)
            for one in waiting.findings
        ],
        definition=escaped(waiting.live.decode(errors="replace"), 65_536),
    )


@router.get("/waiting", response_model=Ok[WaitingList], response_model_exclude_none=True)
async def list_waiting(request: Request, rooms: Rooms) -> dict[str, Any]:
    """Every tool that is new, changed or refused, with what is different about it and what the scan says."""
    snapshot = rooms.house.catalog.snapshot
    waiting = list(snapshot.waiting.values())
    servers = {name: version_of_all(snapshot.waiting_of(name)) for name in {one.server for one in waiting}}
    return ok(request, WaitingList(waiting=[_view(one) for one in waiting], servers=servers))


@router.post("/approve", response_model=Ok[Decided])
async def approve_tool(request: Request, body: Decision, rooms: Rooms) -> dict[str, Any]:
    """Let agents use a tool in exactly the version that was shown, or everything that waits on a server."""
    return await _decide(request, body, rooms, approve=True)


@router.post("/reject", response_model=Ok[Decided])
async def reject_tool(request: Request, body: Decision, rooms: Rooms) -> dict[str, Any]:
    """Refuse the version that was shown; no other is approved without a person from then on."""
    return await _decide(request, body, rooms, approve=False)


async def _decide(request: Request, body: Decision, rooms: Services, *, approve: bool) -> dict[str, Any]:
    server, colon, tool = body.name.partition(":")
    if not approve and not colon:
        raise ApiError(422, "name: refuse one tool at a time, by its server:tool name.")
    catalog, by = rooms.house.catalog, identity(request).key
    try:
        if approve:
            changes = await catalog.approve(server, tool if colon else None, version=body.version, by=by)
        else:
            changes = await catalog.reject(server, tool, version=body.version, by=by)
    except NothingToDecide as error:
        raise ApiError(404, str(error)) from None
    except VersionChanged as error:
        raise ApiError(409, str(error)) from None
    rooms.note_changes(changes, source(request), request_id(request))
    return ok(request, Decided(name=body.name, decision="approved" if approve else "rejected"))
