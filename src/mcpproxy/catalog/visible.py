"""Which of a server's tools does the operator want? `enabled_tools` and `disabled_tools`, by name or pattern."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from msgspec import structs

from mcpproxy.catalog.listing import Listing
from mcpproxy.config.models import Server


def is_wanted(server: Server, tool: str) -> bool:
    """Whether the operator lets agents see this tool: what is disabled stays out, whatever is enabled."""
    if _named(server.disabled_tools, tool):
        return False
    return server.enabled_tools is None or _named(server.enabled_tools, tool)


def wanted(listing: Listing, server: Server) -> Listing:
    """The list without the tools that the operator does not want."""
    if server.enabled_tools is None and not server.disabled_tools:
        return listing
    return structs.replace(
        listing, tools={name: tool for name, tool in listing.tools.items() if is_wanted(server, name)}
    )


def _named(patterns: Iterable[str], tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
