"""What needs the operator's decision? Each with the place where it is made."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcpproxy.outputs.schema import NotCompiled, compile_schema
from mcpproxy.upstream.server import State
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from mcpproxy.api.services import Services
    from mcpproxy.catalog.catalog import Snapshot
    from mcpproxy.catalog.tool import Tool

_FEW: Final = 3
_PATIENCE: Final = 1.0
"""How many seconds one look may spend on schemas; the next one goes on."""
_ASKING: Final = {
    State.QUARANTINED: "Server {} is quarantined: read what it would run, then approve it or remove it.",
    State.NEEDS_LOGIN: "Server {} needs a login.",
    State.FAILED: "Server {} cannot be started as it is configured.",
}


class Decision(Struct, frozen=True):
    """One thing that waits for the operator."""

    text: str
    href: str
    more: str = ""
    """Why, in the words of whoever found it."""


def _about_tools(rooms: Services) -> Iterator[Decision]:
    """Tools that wait: each by itself, or a server's together where they are many."""
    undecided = [one for one in rooms.house.catalog.snapshot.waiting.values() if one.state != "rejected"]
    for server, count in Counter(one.server for one in undecided).items():
        if count > _FEW:
            text = f"{count} tools of server {server} wait for your approval."
            yield Decision(text, url("/ui/waiting", server=server))
            continue
        for one in undecided:
            if one.server == server:
                what = f"Tool {one.id}" if one.tool else f"The instructions of server {server}"
                why = "changed since approved" if one.state == "changed" else "new"
                remarks = ", ".join(sorted({finding.why for finding in one.findings if finding.severity != "low"}))
                text = f"{what} waits for your approval: {why}."
                yield Decision(text, url("/ui/waiting", name=one.id), remarks)


class Schemas:
    """Which tools have a schema that cannot be checked? Found out in a thread, and once per definition."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, str]] = {}

    async def look(self, snapshot: Snapshot) -> None:
        """Look at the definitions that are new, as many as a moment allows."""
        new = [tool for tool in snapshot.tools.values() if self._reason(tool) is None]
        if new:
            await asyncio.to_thread(self._compile, new)
        if len(self._known) > len(snapshot.tools):
            self._known = {name: found for name, found in self._known.items() if name in snapshot.tools}

    def unchecked(self, snapshot: Snapshot) -> list[tuple[Tool, str]]:
        """The tools whose schemas cannot be checked, and why."""
        broken = [(name, reason) for name, (_, reason) in self._known.items() if reason]
        found = [(snapshot.tools.get(name), reason) for name, reason in broken]
        return [(tool, reason) for tool, reason in found if tool is not None and self._reason(tool)]

    def _reason(self, tool: Tool) -> str | None:
        definition, reason = self._known.get(tool.id, (b"", ""))
        return reason if definition == tool.definition else None

    def _compile(self, tools: Iterable[Tool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        for tool in tools:
            self._known[tool.id] = (tool.definition, uncheckable(tool))
            if time.monotonic() > deadline:
                return


def uncheckable(tool: Tool) -> str:
    """Why a tool's arguments or results cannot be checked; empty where they can."""
    schemas = {"inputSchema": tool.input_schema, "outputSchema": tool.output_schema}
    compiled = {name: compile_schema(schema) for name, schema in schemas.items() if schema is not None}
    return "; ".join(f"{name}: {found.reason}" for name, found in compiled.items() if isinstance(found, NotCompiled))


def decisions(rooms: Services, schemas: Schemas) -> list[Decision]:
    """Everything that waits for the operator, the most pressing first."""
    found = []
    error = rooms.config_error()
    if error is not None:
        text = "The configuration file has changed into one that does not load; the running one stays in force."
        found.append(Decision(text, "/ui/settings", rooms.house.mask(error)))
    for upstream in rooms.house.pool:
        if upstream.state in _ASKING:
            text = _ASKING[upstream.state].format(upstream.name)
            reason = "" if upstream.state is State.QUARANTINED else rooms.house.mask(upstream.reason)
            found.append(Decision(text, url("/ui/server", name=upstream.name), reason))
    found += _about_tools(rooms)
    for tool, reason in schemas.unchecked(rooms.house.catalog.snapshot):
        text = f"Tool {tool.id} has a schema that cannot be checked."
        found.append(Decision(text, url("/ui/tool", name=tool.id), reason))
    return found
