"""`/activity`: what happened, how much of it, all of it, and whether it still is what was written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from mcpproxy.activity.export import FORMATS, export
from mcpproxy.activity.filters import DEFAULT_LIMIT, MOST, Filter, parse_filter
from mcpproxy.activity.query import get_record, list_records
from mcpproxy.activity.record import INTENT_TYPES, STATUSES, TYPES
from mcpproxy.activity.summary import PERIODS, summarize
from mcpproxy.activity.verify import verify_in
from mcpproxy.api.envelope import ApiError, Ok, bad_field, ok, raw_ok
from mcpproxy.api.services import MyTurns, Rooms
from mcpproxy.api.stream import TakingTurns

router = APIRouter(prefix="/activity", tags=["activity"])

_MEDIA = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}
_LONGEST_NAME = 256


class Activity(BaseModel):
    """One thing that happened."""

    id: str = Field(examples=["01KBDZ3V7W9Q4C2M8T5N6R1XYA"])
    type: str
    source: Literal["mcp", "cli", "api", "internal"]
    server_name: str | None
    tool_name: str | None
    status: str
    error_message: str | None
    arguments: Any
    response: Any
    duration_ms: float | None
    timestamp: datetime
    request_id: str | None
    session_id: str | None
    client_name: str | None
    metadata: dict[str, Any]
    writer: str
    position: int
    prev_hash: str
    hash: str


class ActivityPage(BaseModel):
    """Some records, newest first, how many there are in all, and where the next page begins."""

    activities: list[Activity]
    total: int
    total_exact: bool = Field(description="False where there are more than `total` says")
    next_cursor: str | None


class ToolCalls(BaseModel):
    """How often one tool was called."""

    server: str
    tool: str
    count: int


class ActivitySummary(BaseModel):
    """The counts of one period; each map only has what there was, the most frequent first."""

    period: str
    total: int
    by_type: dict[str, int]
    by_status: dict[str, int]
    by_intent: dict[str, int]
    by_server: dict[str, int]
    top_tools: list[ToolCalls]


class SignedWord(BaseModel):
    """A signed statement about a chain; the last `head` or `end`, kept elsewhere, proves that nothing was cut off."""

    kind: str
    writer: str
    position: int
    hash: str
    signed_at: datetime
    key: str
    signature: str


class Chain(BaseModel):
    """What was found of one writer's chain."""

    writer: str
    records: int
    first: int
    last: int
    pruned: int
    anchored: int
    ended: bool
    statements: list[SignedWord]


class FoundProblem(BaseModel):
    """One thing that is not as it was written."""

    kind: str
    writer: str
    position: int
    id: str | None
    text: str


class Verification(BaseModel):
    """Whether the log is what was written; `problems` begins with the first bad record."""

    ok: bool
    records: int
    unanchored: int = Field(description="Records that no signature covers yet")
    chains: list[Chain]
    problems: list[FoundProblem]


def _choice(values: tuple[str, ...], text: str) -> Any:
    return Query(description=text, json_schema_extra={"enum": list(values)})


def _name(text: str) -> Any:
    return Query(max_length=2 * _LONGEST_NAME, description=text)


def asked(
    *,
    type: Annotated[str | None, _choice(TYPES, "What kind of thing happened")] = None,
    status: Annotated[str | None, _choice(STATUSES, "What it came to")] = None,
    server: Annotated[str | None, _name("The server's name")] = None,
    tool: Annotated[str | None, _name("A bare name, or `server:tool`")] = None,
    intent_type: Annotated[str | None, _choice(INTENT_TYPES, "The declared kind of operation")] = None,
    request_id: Annotated[str | None, _name("All records of one request")] = None,
    session_id: Annotated[str | None, _name("All records of one MCP session")] = None,
    start_time: Annotated[
        str | None, Query(description="That moment and later: RFC 3339, a date, or an age such as 24h")
    ] = None,
    end_time: Annotated[str | None, Query(description="Before that moment")] = None,
    q: Annotated[
        str | None, Query(description="Words that must all be in the tool's name, the error or the reason")
    ] = None,
) -> Filter:
    """Which records a request asks for; an empty value is no filter."""
    given = {name: value for name, value in locals().items() if value is not None}
    for name, value in given.items():
        if "\0" in value:
            raise bad_field(name, "it holds a NUL character")
    return parse_filter(given)


Asked = Annotated[Filter, Depends(asked)]


@router.get("", response_model=Ok[ActivityPage])
async def list_activity(
    request: Request,
    *,
    rooms: Rooms,
    turns: MyTurns,
    which: Asked,
    limit: Annotated[int, Query(ge=1, le=MOST, description="The longest page")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of the page before")] = None,
) -> Response:
    """What happened, newest first. A page stays in place while new records arrive."""

    def page() -> bytes:
        return msgspec.json.encode(list_records(rooms.storage, which, limit, cursor))

    with turns.queries.one():
        return raw_ok(request, await asyncio.to_thread(page))


@router.get("/summary", response_model=Ok[ActivitySummary])
async def summarize_activity(
    request: Request,
    rooms: Rooms,
    turns: MyTurns,
    period: Annotated[str, _choice(tuple(PERIODS), "The time up to now")] = "24h",
) -> dict[str, Any]:
    """How much happened, and of what kind."""
    with turns.queries.one():
        found = await asyncio.to_thread(summarize, rooms.storage, period)
    return ok(request, msgspec.to_builtins(found))


@router.get(
    "/export",
    response_class=Response,
    responses={
        200: {
            "description": "The records, oldest first",
            "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in _MEDIA.values()},
        }
    },
)
async def export_activity(
    rooms: Rooms,
    turns: MyTurns,
    which: Asked,
    format: Annotated[str, _choice(FORMATS, "Lines of JSON with their hashes, or a table")] = "jsonl",
) -> Response:
    """All records that the filters let through, oldest first, as lines of JSON or as CSV."""
    form = format or FORMATS[0]
    pieces = export(rooms.storage, form, which)

    async def read() -> AsyncGenerator[bytes, None]:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece

    name = {"Content-Disposition": f'attachment; filename="activity.{form}"'}
    return TakingTurns(turns.exports, read(), media_type=_MEDIA[form], headers=name)


@router.get("/verify", response_model=Ok[Verification])
async def verify_activity(request: Request, rooms: Rooms, turns: MyTurns) -> dict[str, Any]:
    """Hold every record against its hash and its predecessor, and every chain against its signatures."""

    with turns.verifications.one():
        found = await asyncio.to_thread(verify_in, rooms.data_dir, rooms.storage)
    return ok(request, msgspec.to_builtins(found))


@router.get("/{id}", response_model=Ok[Activity])
async def get_activity(
    request: Request, id: Annotated[str, Path(description="The record's id")], rooms: Rooms
) -> Response:
    """One record, whole."""
    found = await asyncio.to_thread(get_record, rooms.storage, id) if "\0" not in id else None
    if found is None:
        raise ApiError(404, f"There is no record with the id {id[:64]!r}.")
    return raw_ok(request, msgspec.json.encode(found))
