"""Where do other programs keep their configuration? The files of each MCP client, by platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """The user's home."""
    return Path(os.environ.get("HOME") or Path.home())


def application_data(*, mac: str, linux: str) -> Path:
    """The directory of a desktop application's settings."""
    if sys.platform == "darwin":
        return home() / "Library" / "Application Support" / mac
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / linux


def claude_desktop() -> Path:
    """Claude Desktop."""
    return application_data(mac="Claude", linux="Claude") / "claude_desktop_config.json"


def claude_code() -> Path:
    """Claude Code, the user's own servers."""
    return home() / ".claude.json"


def cursor() -> Path:
    """Cursor."""
    return home() / ".cursor" / "mcp.json"


def vscode() -> Path:
    """Visual Studio Code, the user's own servers."""
    return application_data(mac="Code/User", linux="Code/User") / "mcp.json"


def gemini() -> Path:
    """Gemini CLI."""
    return home() / ".gemini" / "settings.json"


def codex() -> Path:
    """Codex CLI."""
    return home() / ".codex" / "config.toml"


def go_mcpproxy() -> Path:
    """The Go mcpproxy, which has its file where ours is by default."""
    return home() / ".mcpproxy" / "mcp_config.json"
