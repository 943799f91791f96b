"""Which servers do other programs know? The files of Claude, Cursor and VS Code, and what stands in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from mcpproxy.config import document as documents
from mcpproxy.config.errors import ConfigAccessError, ConfigError, Problem
from mcpproxy.config.load import parse, read
from mcpproxy.config.models import Server

_MAC: Final = "Library/Application Support"
PLACES: Final = (
    ("Claude Desktop", (f"{_MAC}/Claude/claude_desktop_config.json", ".config/Claude/claude_desktop_config.json")),
    ("Claude Code", (".claude.json",)),
    ("Cursor", (".cursor/mcp.json",)),
    ("VS Code", (f"{_MAC}/Code/User/mcp.json", ".config/Code/User/mcp.json")),
)
"""Where each program keeps its servers, below the home directory."""


class Found(Struct, frozen=True, kw_only=True):
    """One server of another program: its entry as it stands there, and what it means here."""

    name: str
    entry: dict[str, Any]
    server: Server | None = None
    problems: tuple[str, ...] = ()
    """Why it cannot be taken over; empty where it can."""
    warnings: tuple[str, ...] = ()


class ForeignFile(Struct, frozen=True, kw_only=True):
    """A file of another program on this machine."""

    program: str
    path: Path
    servers: tuple[Found, ...]


def files_of(home: Path) -> list[ForeignFile]:
    """The files of other programs that have servers in them. Reads the disk: use it in a thread."""
    found = []
    for program, places in PLACES:
        for place in places:
            try:
                servers = servers_in(read(home / place)[0])
            except (ConfigError, ConfigAccessError):
                continue  # absent, unreadable, or without servers: nothing to offer
            found.append(ForeignFile(program=program, path=home / place, servers=servers))
    return found


def servers_in(data: bytes) -> tuple[Found, ...]:
    """Every server in a file of ours or of another program, or in a snippet of one; raises ConfigError."""
    entries = dict(_entries(documents.decode(data).value))
    if not entries:
        allowed = 'it should have "mcpServers" (Claude, Cursor) or "servers" (VS Code)'
        raise ConfigError([Problem(path="", what="there are no servers in it", allowed=allowed)])
    return tuple(_found(name, entry) for name, entry in entries.items())


def _entries(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and entries; the same name a second time counts as the last one."""
    # Claude Code keeps some per project; VS Code once had all of them in its settings.
    projects = document.get("projects")
    for inner in (*(projects.values() if isinstance(projects, dict) else ()), document.get("mcp")):
        if isinstance(inner, dict):
            yield from _entries(inner)
    for key in ("mcpServers", "servers"):
        servers = document.get(key)
        if isinstance(servers, dict):
            yield from ((name, entry) for name, entry in servers.items() if isinstance(entry, dict))
        elif isinstance(servers, list):
            yield from ((str(entry.get("name", "")), entry) for entry in servers if isinstance(entry, dict))


def _found(name: str, entry: dict[str, Any]) -> Found:
    given = {**entry, "name": name}
    try:
        config, warnings = parse({"mcpServers": [given]})
    except ConfigError as error:
        return Found(name=name, entry=given, problems=tuple(_short(str(problem)) for problem in error.problems))
    return Found(name=name, entry=given, server=config.servers[0], warnings=tuple(map(_short, warnings)))


def _short(text: str) -> str:
    return text.removeprefix("mcpServers[0]").lstrip(".: ")
