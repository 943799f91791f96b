"""Which tools does an agent get to see for its question? retrieve_tools, within the caller's scope and a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from mcpproxy.agent.arguments import read_own
from mcpproxy.agent.descriptions import usage_instructions
from mcpproxy.catalog.finder import document_of
from mcpproxy.policy.annotations import call_with, effective_hints

if TYPE_CHECKING:
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Caller
    from mcpproxy.config.models import Config

_MAX_ECHO = 1000


class RetrieveArguments(Struct, forbid_unknown_fields=True):
    """What retrieve_tools takes."""

    query: str
    limit: Annotated[int, Meta(ge=1, le=100)] | None = None
    detail: Literal["full", "compact"] | None = None
    read_only_only: bool = False
    exclude_destructive: bool = False


async def retrieve_tools(house: House, config: Config, caller: Caller, arguments: bytes) -> dict[str, Any]:
    """Search as an agent asks for it."""
    return await find_tools(house, config, caller, read_own(arguments, RetrieveArguments))


async def find_tools(house: House, config: Config, caller: Caller, asked: RetrieveArguments) -> dict[str, Any]:
    """The best tools for a question, as many schemas as the budget allows, and how to call them."""
    snapshot = house.catalog.snapshot
    settings = config.intent_declaration

    def allow(tool_id: str) -> bool:
        tool = snapshot.tools.get(tool_id)
        if tool is None or not caller.scope.sees_tool(tool.server, tool.name):
            return False
        kind = effective_hints(tool.annotations, settings).kind
        if asked.read_only_only and kind != "read_only":
            return False
        return not (asked.exclude_destructive and kind == "destructive")

    hits = await house.finder.search(asked.query, asked.limit or config.tools_limit, allow, house.usage)
    from mcpproxy.catalog.search.budget import Candidate, build_answer
    from mcpproxy.catalog.withheld import count_matching, waiting_note

    found = [(snapshot.tools[hit.id], hit.score) for hit in hits.best]
    candidates = [
        Candidate(document_of(tool), score, tool.annotations, call_with(effective_hints(tool.annotations, settings)))
        for tool, score in found
    ]
    echo = asked.query[:_MAX_ECHO]
    answer = build_answer(candidates, max_tokens=config.retrieve_tools_max_tokens, detail=asked.detail, echo=echo)
    for entry, (tool, _) in zip(answer.tools, found, strict=False):
        if "inputSchema" in entry:
            entry["inputSchema"] = Raw(tool.input_schema)  # as its server wrote it
    shown: dict[str, Any] = {
        "tools": answer.tools,
        "query": echo,
        "total": hits.total,
        "usage_instructions": usage_instructions(),
    }
    visible = [one for one in snapshot.waiting.values() if caller.scope.sees_tool(one.server, one.tool)]
    notes = [answer.note, waiting_note(count_matching(visible, asked.query)) if visible else None]
    if any(notes):
        shown["note"] = " ".join(filter(None, notes))
    return shown
