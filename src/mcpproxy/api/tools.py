"""`/tools`: what is there, what fits a question, and the call itself, on the same way that agents take."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from msgspec import Meta, Raw, field, structs
from pydantic import BaseModel, ConfigDict, Field

from mcpproxy.agent.descriptions import REMOVED_CALL_TOOL
from mcpproxy.agent.tools import describe
from mcpproxy.api.envelope import ApiError, Failure, Ok, bad_field, failure_body, raw_ok
from mcpproxy.api.schema import json_body
from mcpproxy.api.services import RequestId, Rooms, caller, identity
from mcpproxy.asgi import Gone, Headers
from mcpproxy.calls import result
from mcpproxy.calls.model import Asked, Call, Reply
from mcpproxy.calls.reports import Reports
from mcpproxy.policy.operations import OperationType
from mcpproxy.policy.verdict import Code, Refusal

if TYPE_CHECKING:
    from mcpproxy.calls.pipeline import Pipeline

router = APIRouter(tags=["tools"])

_STATUS: dict[Code, int] = {
    "INVALID_ARGUMENTS": 422,
    "UNKNOWN_SERVER": 404,
    "UNKNOWN_TOOL": 404,
    "UPSTREAM_UNAVAILABLE": 503,
    "LOGIN_REQUIRED": 503,
    "TIMEOUT": 504,
    "RESULT_TOO_LARGE": 502,
    "UPSTREAM_INVALID": 502,
    "INPUT_REQUIRED": 502,
    "OUTPUT_INVALID": 502,
    "RECORD_FAILED": 503,
}
"""Every other refusal is one of policy: 403."""

_EVENTS = "text/event-stream"

CallWith = Literal["call_tool_read", "call_tool_write", "call_tool_destructive"]


class ToolEntry(BaseModel):
    """One tool."""

    name: str = Field(examples=["github:create_issue"])
    title: str | None = None
    description: str
    server: str
    annotations: dict[str, Any]
    call_with: CallWith
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None = None


class ToolList(BaseModel):
    """Every tool in the caller's scope."""

    tools: list[ToolEntry]
    total: int


class FoundTool(BaseModel):
    """One hit; where the budget of the answer has no room for its schema, it has a signature instead."""

    name: str
    score: float = Field(ge=0, le=1)
    description: str
    annotations: dict[str, Any]
    call_with: CallWith
    server: str | None = None
    inputSchema: dict[str, Any] | None = None
    signature: str | None = None


class FoundTools(BaseModel):
    """What `retrieve_tools` answers."""

    model_config = ConfigDict(extra="allow")

    tools: list[FoundTool]
    query: str
    total: int
    usage_instructions: str


def _object(description: str) -> Meta:
    return Meta(description=description, extra_json_schema={"type": ["object", "null"]})


_ONE_MEMBER = re.compile("Object (missing required|contains unknown) field `(.*)`", re.DOTALL)


class CallRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A call of one tool."""

    name: Annotated[str, Meta(description="The tool's `server:tool` name")]
    variant: Annotated[OperationType, Meta(description="The kind of operation that is meant")]
    arguments: Annotated[Raw, _object("As the tool's inputSchema says")] = field(default_factory=lambda: Raw(b"null"))
    intent: Annotated[Any, _object("operation_type, data_sensitivity and reason, all of them optional")] = None


class _Refused(msgspec.Struct):
    error: Refusal


class CallResult(BaseModel):
    """The tool's result, as its server sent it."""

    model_config = ConfigDict(extra="allow")

    content: list[dict[str, Any]] = []
    isError: bool = False


@router.get("/tools", response_model=Ok[ToolList])
async def list_tools(
    request: Request,
    rooms: Rooms,
    server: Annotated[str | None, Query(description="Only the tools of this server")] = None,
) -> Response:
    """Every tool that this key may see."""
    scope = identity(request).scope
    config = rooms.loaded().config
    tools = [
        describe(tool, config)
        for tool in rooms.house.catalog.snapshot.tools.values()
        if scope.sees_tool(tool.server, tool.name) and server in (None, "", tool.server)
    ]
    return raw_ok(request, msgspec.json.encode({"tools": tools, "total": len(tools)}))


@router.get("/tools/search", response_model=Ok[FoundTools])
async def search_tools(
    request: Request,
    rooms: Rooms,
    named: RequestId,
    q: Annotated[str, Query(min_length=1, max_length=10_000, description="What the tool should do")],
    limit: Annotated[int | None, Query(ge=1, le=100, description="Default: `tools_limit`")] = None,
) -> Response:
    """The tools that fit a question, best first: the same search as retrieve_tools."""
    asked = msgspec.json.encode({"query": q, "limit": limit})
    found = result.view(await rooms.dispatch("retrieve_tools", asked, caller(request), named, None))
    if found.is_error:
        raise _refused(msgspec.json.decode(found.structured_content, type=_Refused).error)
    return raw_ok(request, bytes(found.structured_content))


_EXAMPLE = {
    "name": "demo:search_notes",
    "variant": "read",
    "arguments": {"query": "milk"},
    "intent": {"reason": "test"},
}


@router.post(
    "/tools/call",
    response_model=Ok[CallResult],
    openapi_extra=json_body(CallRequest, "The tool, the kind of operation that is meant, and its arguments", _EXAMPLE),
    responses={
        status: {"model": Failure, "description": text}
        for status, text in {
            502: "The result was blocked, too large, or no result at all",
            503: "The server is not available, or the record could not be written",
            504: "The server did not answer in time",
        }.items()
    },
)
async def call_tool(request: Request, rooms: Rooms, named: RequestId) -> Response:
    """Call a tool. Checked and recorded exactly like an agent's call.

    With `Accept: text/event-stream` the answer is a stream: `progress` events, then one `result` or `error`.
    """
    try:
        body = msgspec.json.decode(await request.body(), type=CallRequest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _not_a_call(error) from None
    if body.name == "call_tool":
        raise ApiError(404, REMOVED_CALL_TOOL, "UNKNOWN_TOOL")
    arguments = bytes(body.arguments)
    call = Call(
        body.variant,
        Asked(name=body.name, args=None if arguments == b"null" else arguments, intent=body.intent),
        caller(request),
        request_id=named,
        # Texts are cut to spare a model's context, and the rest is read by a tool that is not to be had here.
        config=structs.replace(rooms.loaded().config, tool_response_limit=0),
    )
    if rooms.pipeline.tracing is not None:
        call.parent = rooms.pipeline.tracing.parent_of(Headers(request.scope["headers"]))
    if _EVENTS in request.headers.get("accept", ""):
        # Nobody else waits for this stream, so it takes no turn: the call itself has its bounds.
        return StreamingResponse(_as_it_goes(request, rooms.pipeline, call), media_type=_EVENTS)
    reply = await _unless_gone(request, rooms.pipeline, call)
    if reply.refusal is not None:
        raise _refused(reply.refusal)
    return raw_ok(request, reply.result)


async def _as_it_goes(request: Request, pipeline: Pipeline, call: Call) -> AsyncGenerator[bytes, None]:
    """A call as events: `progress` as the upstream reports it, then `result` or `error` with the envelope."""
    reports = Reports()
    call.on_progress = reports.put
    running = asyncio.create_task(pipeline.run(call))
    running.add_done_callback(lambda _: reports.end())
    try:
        while (report := await reports.get()) is not None:
            yield _event(b"progress", report)
        reply = running.result()
        if reply.refusal is not None:
            yield _event(b"error", failure_body(_refused(reply.refusal), call.request_id))
        else:
            yield _event(b"result", bytes(raw_ok(request, reply.result).body))
    finally:  # the client may have left, which cancels the call
        running.cancel()
        await asyncio.wait({running})


def _event(kind: bytes, data: bytes) -> bytes:
    lines = b"".join(b"data: %s\n" % line for line in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
    return b"event: %s\n%s\n" % (kind, lines)


def _not_a_call(error: Exception) -> ApiError:
    """What is wrong with the body, in the words of its reader: `Expected … - at `$.variant``."""
    what, _, place = str(error).partition(" - at `$")
    if (member := _ONE_MEMBER.match(what)) is not None:
        what, place = ("it is missing" if member[1] == "missing required" else "there is no such field"), member[2]
    field = place.strip("`.") or "body"
    allowed = list(get_args(OperationType)) if field == "variant" else None
    if what == "there is no such field":
        allowed = list(CallRequest.__struct_fields__)
    return bad_field(field[:200], f"{what}; use {', '.join(allowed)}" if allowed else what[:500], allowed)


async def _unless_gone(request: Request, pipeline: Pipeline, call: Call) -> Reply:
    """What the call comes to; it is ended where its client leaves."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    running, leaving = asyncio.create_task(pipeline.run(call)), asyncio.create_task(left())
    try:
        await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise Gone
        return running.result()
    finally:
        leaving.cancel()
        running.cancel()
        await asyncio.wait({running})


def _refused(refusal: Refusal) -> ApiError:
    shed = bool(refusal.details.get("shed"))
    status = 429 if shed else _STATUS.get(refusal.code, 403)
    headers = {"Retry-After": "1"} if shed else None
    return ApiError(status, refusal.message, refusal.code, refusal.details, headers)
