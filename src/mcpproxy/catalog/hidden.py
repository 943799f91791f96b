"""Why can no agent see this tool? For operators: an agent does not even learn that something is hidden."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final

from mcpproxy.catalog.approval import State
from mcpproxy.catalog.visible import is_wanted
from mcpproxy.config.models import Server

_WAITS: Final[Mapping[State, str]] = {
    "pending": "it is new and waits for approval",
    "changed": "it is not as it was approved, and waits for approval",
    "rejected": "this version of it was refused",
}


def why_hidden(tool_id: str, servers: Iterable[Server], listed: Container[str], state: State | None) -> str | None:
    """What keeps a tool from being found; None where nothing does, and it is simply not there.

    `listed` holds the servers whose tools are known; `state` is that of the tool where it waits for an operator.
    """
    name, _, tool = tool_id.partition(":")
    server = next((one for one in servers if one.name == name), None)
    if server is None or not tool:
        return None
    if not server.enabled:
        return "its server is disabled"
    if server.quarantined:
        return "its server is quarantined"
    if name not in listed:
        return "its server has not listed its tools yet"
    if state is not None:
        return _WAITS[state]
    return None if is_wanted(server, tool) else "enabled_tools or disabled_tools of its server leaves it out"
