"""What did one server list? Every tool that can be used, and a word on each that cannot."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct, field

from mcpproxy.catalog.pins import identity_key
from mcpproxy.catalog.tool import BadDefinition, Tool, parse_tool
from mcpproxy.wire.envelope import elements, members
from mcpproxy.wire.errors import InvalidAnswer

MAX_TOOLS = 10_000
_MAX_PAGE_COMMAS = 1_000_000
"""Before a page is cut into tools: millions of tiny ones would cost fifty times their size."""


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

    def is_of(self, identity: str) -> bool:
        """Whether it is a list of this server; one from the database knows only the digest of what its server is."""
        return self.identity in (identity, identity_key(identity))


class Page(Struct, frozen=True):
    """One page of a list: definitions as they were written, and where the next page is."""

    definitions: list[bytes]
    next_cursor: str | None


class _WirePage(Struct, rename="camel"):
    tools: list[Raw] = []
    next_cursor: str | None = None


def read_page(raw: bytes) -> Page:
    """Cut a `tools/list` result into its definitions; a broken one among them is none of the others' business."""
    if raw.count(b",") > _MAX_PAGE_COMMAS:
        raise InvalidAnswer("its tool list has more parts than any list of tools needs")
    try:
        page = msgspec.json.decode(raw, type=_WirePage)
        return Page([bytes(tool) for tool in page.tools], page.next_cursor)
    except (msgspec.MsgspecError, RecursionError):
        found = members(raw)  # a lone surrogate in one description must not cost the whole list
    try:
        cursor = msgspec.json.decode(found.get("nextCursor", b"null"), type=str | None)
    except msgspec.MsgspecError as error:
        raise InvalidAnswer(f"its tool list cannot be read: {error}") from None
    return Page(elements(found.get("tools", b"[]")), cursor)


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
