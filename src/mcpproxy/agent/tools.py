"""What do the built-in tools answer? describe_tool and read_cache; each use goes on record as our own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from mcpproxy.activity.journal import RecordFailed
from mcpproxy.activity.record import NOTHING, Record
from mcpproxy.agent.arguments import BadArguments, read_own
from mcpproxy.calls import result
from mcpproxy.catalog.refusal import not_approved
from mcpproxy.outputs.cut import page
from mcpproxy.policy.access import unknown_server, unknown_tool
from mcpproxy.policy.annotations import call_with, effective_hints
from mcpproxy.policy.quoting import quoted_name
from mcpproxy.policy.verdict import Refusal

if TYPE_CHECKING:
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Caller
    from mcpproxy.catalog.tool import Tool
    from mcpproxy.config.models import Config

_MAX_NAMES = 20


class DescribeArguments(Struct, forbid_unknown_fields=True):
    """What describe_tool takes."""

    name: str | None = None
    names: Annotated[list[str], Meta(min_length=1, max_length=_MAX_NAMES)] | None = None


class ReadCacheArguments(Struct, forbid_unknown_fields=True):
    """What read_cache takes."""

    key: str
    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1)] | None = None


def describe(tool: Tool, config: Config) -> dict[str, Any]:
    """One tool, whole."""
    described: dict[str, Any] = {
        "name": tool.id,
        "description": tool.description,
        "inputSchema": Raw(tool.input_schema),
        "server": tool.server,
        "annotations": tool.annotations,
        "call_with": call_with(effective_hints(tool.annotations, config.intent_declaration)),
    }
    if tool.title:
        described["title"] = tool.title
    if tool.output_schema is not None:
        described["outputSchema"] = Raw(tool.output_schema)
    return described


def describe_tool(house: House, config: Config, caller: Caller, arguments: bytes) -> dict[str, Any] | Refusal:
    """Full definitions of the tools named; one that is not there is said so beside the others."""
    asked = read_own(arguments, DescribeArguments)
    if (asked.name is None) == (asked.names is None):
        raise BadArguments("Give name, or names for several tools at once.")
    names = asked.names if asked.names is not None else [asked.name or ""]
    found: list[dict[str, Any]] = []
    missing: list[Refusal] = []
    for name in names:
        tool = house.catalog.snapshot.find(name)
        waiting = house.catalog.snapshot.waiting.get(name)
        server, _, bare = name.partition(":")
        if tool is not None and caller.scope.sees_tool(tool.server, tool.name):
            found.append(describe(tool, config))
        elif waiting is not None and caller.scope.sees_tool(server, bare):
            missing.append(not_approved(name, waiting.state))
        elif caller.scope.sees_server(server) and house.pool.get(server) is not None:
            missing.append(unknown_tool(server, bare))
        else:
            missing.append(unknown_server(server))
    if not found:
        return missing[0]
    answer: dict[str, Any] = {"tools": found}
    if missing:
        answer["not_found"] = [refusal.message for refusal in missing]
    return answer


def read_cache(house: House, config: Config, owner: str, arguments: bytes) -> dict[str, Any] | Refusal:
    """One more piece of an answer that was cut."""
    asked = read_own(arguments, ReadCacheArguments)
    kept = house.cache.get(asked.key, owner=owner)
    if kept is None:
        message = f"Nothing is kept under key '{quoted_name(asked.key)}' for you: it has expired, or never was."
        return Refusal("INVALID_ARGUMENTS", f"{message} Call the tool again.")
    most = config.tool_response_limit or len(kept.text)
    text, following = page(kept.text, asked.offset, min(asked.limit or most, most))
    return {"text": text, "offset": asked.offset, "next_offset": following, "total": len(kept.text), "tool": kept.tool}


async def recorded(
    house: House, caller: Caller, name: str, *, request_id: str, arguments: bytes, started: float, answer: Any
) -> bytes:
    """Put the use of a built-in tool on record and give the answer as the agent gets it."""
    refusal = answer if isinstance(answer, Refusal) else None
    body = result.refused(refusal) if refusal is not None else result.plain(answer)
    record = Record(
        type="internal_tool_call",
        source=caller.source,
        tool_name=name,
        status="rejected" if refusal is not None else "success",
        error_message=refusal.message if refusal is not None else None,
        arguments=Raw(arguments),
        response=NOTHING if refusal is not None else Raw(msgspec.json.encode(answer)),
        duration_ms=round((time.perf_counter() - started) * 1000, 3),
        request_id=request_id,
        session_id=caller.session_id,
        client_name=caller.client_name,
    )
    try:
        await house.journal.write(record)
    except RecordFailed as error:
        return result.refused(Refusal("RECORD_FAILED", str(error)))
    return body
