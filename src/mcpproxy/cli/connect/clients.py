"""Which MCP clients are there, what does each want to read about a server, and how does it ask for permission?

The forms are those of docs/intent.md and, for Gemini CLI and Codex, of their own reference pages.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from mcpproxy.cli import places

NAME: Final = "mcpproxy"
"""What the proxy is called in every client; permissions refer to it."""
_FREE: Final = ("retrieve_tools", "describe_tool", "read_cache", "call_tool_read")
_ASKED: Final = ("call_tool_write", "call_tool_destructive")

Entry = dict[str, Any]


class Target(Struct, frozen=True):
    """Where the proxy is to be had."""

    url: str | None
    """None where it serves on stdio only."""
    command: tuple[str, ...]
    token: str | None = None

    @property
    def headers(self) -> dict[str, Any]:
        """The header that lets the client in, where one is needed."""
        return {"headers": {"Authorization": f"Bearer {self.token}"}} if self.token else {}


class Client(Struct, frozen=True, kw_only=True):
    """One client: its file, the block of servers in it, its word for a server, and its permissions."""

    title: str
    path: Callable[[], Path]
    block: str
    remote: Callable[[Target], Entry] | None
    """None where it can only start servers, not reach them."""
    permissions: Callable[[], str]
    """A snippet that lets reads pass and has the client ask for the rest."""
    where: str
    """Where that snippet goes."""
    after: str = ""
    """What to do then."""

    @property
    def is_toml(self) -> bool:
        """Whether its file is TOML rather than JSON."""
        return self.path().suffix == ".toml"

    def entry(self, target: Target) -> Entry:
        """The server's entry for this client."""
        if self.remote is not None and target.url is not None:
            return self.remote(target)
        return {"command": target.command[0], "args": list(target.command[1:])}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2)


def _claude_code_permissions() -> str:
    names = {kind: [f"mcp__{NAME}__{tool}" for tool in tools] for kind, tools in (("allow", _FREE), ("ask", _ASKED))}
    return _json({"permissions": names})


def _gemini_permissions() -> str:
    def rule(tools: tuple[str, ...], decision: str) -> str:
        return (
            f'[[rule]]\nmcpName = "{NAME}"\ntoolName = {json.dumps(tools)}\ndecision = "{decision}"\npriority = 100\n'
        )

    return rule(_FREE, "allow") + "\n" + rule(_ASKED, "ask_user").rstrip()


def _codex_permissions() -> str:
    tables = [f'[mcp_servers.{NAME}.tools.{tool}]\napproval_mode = "approve"' for tool in _FREE]
    tables += [f'[mcp_servers.{NAME}.tools.{tool}]\napproval_mode = "prompt"' for tool in _ASKED]
    return "\n\n".join(tables)


CLIENTS: Final[dict[str, Client]] = {
    "claude-code": Client(
        title="Claude Code",
        path=places.claude_code,
        block="mcpServers",
        remote=lambda target: {"type": "http", "url": target.url, **target.headers},
        permissions=_claude_code_permissions,
        where="~/.claude/settings.json",
        after="Start a new session of Claude Code; /mcp shows the server.",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        path=places.claude_desktop,
        block="mcpServers",
        remote=None,
        permissions=lambda: (
            "Claude Desktop keeps permissions in its own settings. When it asks, allow "
            f"{', '.join(_FREE)} always,\nand {' and '.join(_ASKED)} once each time."
        ),
        where="Claude Desktop itself",
        after="Quit Claude Desktop and start it again.",
    ),
    "cursor": Client(
        title="Cursor",
        path=places.cursor,
        block="mcpServers",
        remote=lambda target: {"url": target.url, **target.headers},
        permissions=lambda: _json({"mcpAllowlist": [f"{NAME}:{tool}" for tool in _FREE]}),
        where="~/.cursor/permissions.json",
        after="Cursor takes it up by itself; Settings > MCP shows the server.",
    ),
    "vscode": Client(
        title="VS Code",
        path=places.vscode,
        block="servers",
        remote=lambda target: {"type": "http", "url": target.url, **target.headers},
        permissions=lambda: _json({"chat.tools.eligibleForAutoApproval": dict.fromkeys(_ASKED, False)}),
        where="VS Code's settings.json; reads pass unasked already, since they are marked read-only",
        after="Run 'MCP: List Servers' in VS Code and start it.",
    ),
    "gemini": Client(
        title="Gemini CLI",
        path=places.gemini,
        block="mcpServers",
        remote=lambda target: {"httpUrl": target.url, **target.headers},
        permissions=_gemini_permissions,
        where="~/.gemini/policies/mcpproxy.toml",
        after="Start Gemini CLI again; /mcp shows the server.",
    ),
    "codex": Client(
        title="Codex",
        path=places.codex,
        block="mcp_servers",
        remote=lambda target: {
            "url": target.url,
            **({"http_headers": target.headers["headers"]} if target.token else {}),
        },
        permissions=_codex_permissions,
        where="~/.codex/config.toml",
        after="Start Codex again; /mcp shows the server.",
    ),
}
