"""`/ui/tool`: what is this tool, how is it called, what does it answer? Its page, with a form to try it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.routing import Route

from mcpproxy.activity.filters import Filter
from mcpproxy.activity.query import list_records
from mcpproxy.policy.annotations import call_with, effective_hints
from mcpproxy.policy.operations import OPERATION_OF, OPERATIONS
from mcpproxy.web import words
from mcpproxy.web.approvals import history_of
from mcpproxy.web.callform import Field, Unreadable, arguments_in, arguments_of, fields_of
from mcpproxy.web.decisions import uncheckable
from mcpproxy.web.desk import Desk, desk_of, see
from mcpproxy.web.forms import Form, form
from mcpproxy.web.records import ResultShown, Row, result_of, row_of
from mcpproxy.web.render import url
from mcpproxy.web.schema import decoded, parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mcpproxy.catalog.tool import Tool
    from mcpproxy.web.rest import Answer

SENSITIVITIES: Final = ("public", "internal", "private", "unknown")
_HINTS: Final = {
    "readOnlyHint": "It changes nothing",
    "destructiveHint": "It may destroy something",
    "idempotentHint": "Doing it twice is like doing it once",
    "openWorldHint": "It reaches beyond its own server",
}
_SAID: Final = {True: "yes", False: "no", None: "not said"}
_RECENT: Final = 8


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of trying a tool."""

    ok: bool
    code: str
    message: str
    result: ResultShown | None
    request_id: str


async def show(request: Request) -> Response:
    """One tool."""
    desk, name = desk_of(request), request.query_params.get("name", "")
    if name in desk.rooms.house.catalog.snapshot.waiting:
        return see(url("/ui/waiting", name=name))
    return await _page(request, _find(desk, name))


async def call(request: Request) -> Response:
    """Try a tool: on the way that every call takes, checked and on record."""
    desk, given = desk_of(request), form(request)
    tool = _find(desk, given.get("name"))
    fields = fields_of(decoded(tool.input_schema))
    try:
        if given.get("mode") == "json" or fields is None:
            arguments = arguments_in(given.raw("json").strip())
        else:
            arguments = arguments_of(fields, given)
    except Unreadable as error:
        return await _page(request, tool, given=given, problems=error.problems, status=422)
    answer = await desk.rest.ask(request, "POST", "/tools/call", _body(tool, given, arguments))
    return await _page(request, tool, given=given, outcome=_outcome(answer))


def _find(desk: Desk, name: str) -> Tool:
    tool = desk.rooms.house.catalog.snapshot.find(name)
    if tool is None:
        server = name.partition(":")[0]
        known = desk.rooms.house.pool.get(server) is not None
        why = "Its server does not list it now." if known else f"There is no server named {server[:64]!r}."
        raise HTTPException(404, f"There is no tool named {name[:200]!r}. {why}")
    return tool


def _body(tool: Tool, given: Form, arguments: bytes) -> bytes:
    intent = {"data_sensitivity": given.get("sensitivity"), "reason": given.get("reason")}
    members = {
        "name": json.dumps(tool.id).encode(),
        "variant": json.dumps(given.get("variant")).encode(),
        "arguments": arguments,
        "intent": json.dumps(
            {"operation_type": given.get("variant")} | {key: value for key, value in intent.items() if value}
        ).encode(),
    }
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in members.items()) + b"}"


def _outcome(answer: Answer) -> Outcome:
    error = answer.error
    result = result_of(bytes(answer.data)) if error is None else None
    return Outcome(
        ok=error is None and not (result is not None and result.is_error),
        code=error.code if error is not None else "",
        message=error.message if error is not None else "",
        result=result,
        request_id=answer.request_id,
    )


async def _page(
    request: Request,
    tool: Tool,
    *,
    given: Form | None = None,
    problems: dict[str, str] | None = None,
    outcome: Outcome | None = None,
    status: int = 200,
) -> Response:
    desk = desk_of(request)
    settings = desk.rooms.loaded().config.intent_declaration
    hints = effective_hints(tool.annotations, settings)
    schema, output = decoded(tool.input_schema), decoded(tool.output_schema)
    fields = fields_of(schema)
    query = request.query_params.get("q", "").strip()
    return desk.page(
        request,
        "tool.html",
        status=status,
        tool=tool,
        kind=words.KINDS[hints.kind],
        hints=hints,
        annotations=_annotations(tool),
        call_with=call_with(hints),
        parameters=parameters(schema),
        results=parameters(output) if output is not None else None,
        uncheckable=await asyncio.to_thread(uncheckable, tool),
        example=_example(tool, fields),
        fields=fields,
        as_json=fields is None or (given.get("mode") if given else request.query_params.get("mode")) == "json",
        given=given.values() if given is not None else {"variant": OPERATION_OF[call_with(hints)]},
        operations=OPERATIONS,
        sensitivities=SENSITIVITIES,
        problems=problems or {},
        outcome=outcome,
        history=await asyncio.to_thread(history_of, desk, tool.server, tool.name),
        recent=await asyncio.to_thread(_recent, desk, tool),
        listing=desk.rooms.house.catalog.snapshot.listings.get(tool.server),
        query=query,
        explanation=await _explain(desk, tool, query) if query else None,
    )


def _annotations(tool: Tool) -> list[tuple[str, str, str]]:
    """What the server says about the tool: key, meaning, and what it says."""
    given = {key: value for key, value in tool.annotations.items() if key != "title"}
    known = [(key, meaning, _said(given.pop(key, None))) for key, meaning in _HINTS.items()]
    return known + [(key, "", _said(value)) for key, value in given.items()]


def _said(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _SAID[value]
    return json.dumps(value, ensure_ascii=False, default=str)[:500]


def _example(tool: Tool, fields: list[Field] | None) -> str:
    """What an agent sends to call it."""
    args = {field.name: f"<{field.type}>" for field in fields or () if field.required}
    return json.dumps({"name": tool.id, "args": args}, indent=2, ensure_ascii=False)


def _recent(desk: Desk, tool: Tool) -> list[Row]:
    which = Filter(type="tool_call", tool=tool.id)
    return [row_of(record) for record in list_records(desk.rooms.storage, which, _RECENT).activities]


async def _explain(desk: Desk, tool: Tool, query: str) -> Any:
    """Why a question finds this tool, or does not."""
    house = desk.rooms.house
    known = house.catalog.snapshot.tools
    limit = desk.rooms.loaded().config.tools_limit
    found = await house.finder.explain(
        query[:1000], known, limit=limit, allow=known.__contains__, usage=house.usage, named=tool.id
    )
    return msgspec.to_builtins(found[0]) if found else None


routes = [
    Route("/ui/tool", show, methods=["GET"]),
    Route("/ui/tool", call, methods=["POST"]),
]
