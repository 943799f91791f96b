"""What did one server list? Every tool that can be used, and a word on each that cannot."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from mcpproxy.catalog.tool import BadDefinition, Tool, parse_tool

MAX_TOOLS = 10_000


class Listing(Struct, frozen=True, kw_only=True):
    """The tools of one server at one moment."""

    server: str
    identity: str
    """What the server is (its unexpanded command line or URL): a list belongs to it, not to the name alone."""
    tools: dict[str, Tool] = field(default_factory=dict)
    listed_at: float = 0.0
    stale: bool = False
    """Last known rather than live: the server is away."""
    instructions: str = ""
    protocol_version: str = ""
    server_version: str = ""


def read_tools(server: str, definitions: Sequence[bytes]) -> tuple[dict[str, Tool], list[str]]:
    """Parse a whole list; one bad tool costs itself only. Returns the tools and what was wrong with the others."""
    tools: dict[str, Tool] = {}
    problems: list[str] = []
    for position, definition in enumerate(definitions[:MAX_TOOLS]):
        try:
            tool = parse_tool(server, definition)
        except BadDefinition as error:
            problems.append(f"tool {position + 1} of {server!r} is left out: {error}")
            continue
        if tool.name in tools:
            problems.append(f"tool {tool.name!r} of {server!r} is listed twice; the first one counts")
            continue
        tools[tool.name] = tool
    if len(definitions) > MAX_TOOLS:
        problems.append(f"{server!r} lists {len(definitions)} tools; those after {MAX_TOOLS} are left out")
    return tools, problems
