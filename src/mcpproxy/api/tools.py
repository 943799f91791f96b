"""`/tools`: what is there, what fits a question, and the call itself, on the same way that agents take."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from msgspec import Raw
from pydantic import BaseModel, ConfigDict, Field

from mcpproxy.agent.descriptions import REMOVED_CALL_TOOL
from mcpproxy.agent.tools import describe
from mcpproxy.api.envelope import ApiError, Failure, Ok, raw_ok, request_id
from mcpproxy.api.services import Services, identity, services
from mcpproxy.calls.model import Asked, Call, Caller
from mcpproxy.policy.verdict import Code, Refusal

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


class ToolEntry(BaseModel):
    """One tool."""

    model_config = ConfigDict(extra="allow")

    name: str
    description: str
    server: str
    annotations: dict[str, Any]
    call_with: Literal["call_tool_read", "call_tool_write", "call_tool_destructive"]
    inputSchema: dict[str, Any]


class ToolList(BaseModel):
    """Every tool in the caller's scope."""

    tools: list[ToolEntry]
    total: int


class CallRequest(BaseModel):
    """A call of one tool."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="The tool's `server:tool` name", examples=["demo:list_notes"])
    variant: Literal["read", "write", "destructive"] = Field(description="The kind of operation that is meant")
    arguments: dict[str, Any] | None = None
    intent: dict[str, Any] | None = Field(default=None, description="operation_type, data_sensitivity, reason")


class CallResult(BaseModel):
    """The tool's result, as its server sent it."""

    model_config = ConfigDict(extra="allow")

    content: list[dict[str, Any]] = []
    isError: bool = False


class _RawCall(msgspec.Struct):
    arguments: Raw = Raw(b"")


@router.get("/tools", response_model=Ok[ToolList])
async def list_tools(
    request: Request, rooms: Annotated[Services, Depends(services)], server: str | None = None
) -> Response:
    """Every tool that this key may see."""
    scope = identity(request).scope
    config = rooms.loaded().config
    tools = [
        describe(tool, config)
        for tool in rooms.house.catalog.snapshot.tools.values()
        if scope.sees_tool(tool.server, tool.name) and server in (None, tool.server)
    ]
    return raw_ok(request, msgspec.json.encode({"tools": tools, "total": len(tools)}))


@router.post(
    "/tools/call",
    response_model=Ok[CallResult],
    responses={
        status: {"model": Failure, "description": text}
        for status, text in {
            502: "The result was blocked, too large, or no result at all",
            503: "The server is not available, or the record could not be written",
            504: "The server did not answer in time",
        }.items()
    },
)
async def call_tool(request: Request, body: CallRequest, rooms: Annotated[Services, Depends(services)]) -> Response:
    """Call a tool. Checked and recorded exactly like an agent's call."""
    who = identity(request)
    raw = msgspec.json.decode(await request.body(), type=_RawCall)
    arguments = bytes(raw.arguments)
    call = Call(
        body.variant,
        Asked(name=body.name, args=arguments if body.arguments is not None else None, intent=body.intent),
        Caller(
            source="cli" if request.headers.get("x-mcpproxy-client") == "cli" else "api",
            key=who.key,
            scope=who.scope,
            admin=who.admin,
            client_name=request.headers.get("user-agent"),
        ),
        request_id=request_id(request),
        config=rooms.loaded().config,
    )
    if body.name == "call_tool":
        raise ApiError(404, REMOVED_CALL_TOOL, "UNKNOWN_TOOL")
    reply = await rooms.pipeline.run(call)
    if reply.refusal is not None:
        raise _refused(reply.refusal)
    return raw_ok(request, reply.result)


def _refused(refusal: Refusal) -> ApiError:
    details = msgspec.to_builtins(msgspec.json.decode(msgspec.json.encode(refusal.details)))
    busy = bool(refusal.details.get("shed"))
    status = 429 if busy else _STATUS.get(refusal.code, 403)
    return ApiError(status, refusal.message, refusal.code, details, retry_after=1 if busy else None)
