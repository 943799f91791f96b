"""How do servers look? One line each: state, how many tools, and what is the matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.screen import Cell, Column

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen

COLUMNS: Final = (
    Column("NAME", gives=1),
    Column("STATE"),
    Column("PROTOCOL"),
    Column("TOOLS", right=True),
    Column("SINCE"),
    Column("WHAT", gives=3),
    Column("REASON", gives=2),
)


def print_servers(screen: Screen, servers: list[dict[str, Any]]) -> None:
    """Print servers as a table."""
    screen.rows(COLUMNS, [_row(server) for server in servers])
    if screen.pretty and not servers:
        screen.note("No servers yet. Add one: mcpproxy upstream add NAME -- npx -y PACKAGE")
    for server in servers:
        if screen.pretty and server.get("login_url"):
            screen.line("Log in to ", (server["name"], "bold"), f": mcpproxy upstream login {server['name']}")


def print_outcome(screen: Screen, server: dict[str, Any]) -> None:
    """Print how one server is, in a sentence."""
    state = looks.state(server["state"])
    tools = f", {looks.plural(server['tools'], 'tool')}" if server.get("tools") else ""
    reason = f": {server['reason']}" if server.get("reason") else ""
    screen.line((server["name"], "bold"), " is ", (state.text, state.style), f"{tools}{reason}")


def what(config: dict[str, Any]) -> str:
    """A server's command line or URL, secrets hidden."""
    if config.get("command"):
        return " ".join([config["command"], *config.get("args", ())])
    return str(config.get("url") or "")


def _row(server: dict[str, Any]) -> list[Cell]:
    tools = server.get("tools")
    return [
        Cell(server["name"], style="bold"),
        looks.state(server["state"]),
        Cell(server.get("protocol") or ""),
        Cell("" if tools is None else str(tools), f"{tools} stale" if server.get("stale") and tools else None),
        looks.moment(server.get("since")),
        Cell(what(server["config"]), style="dim"),
        Cell(server.get("reason") or ""),
    ]
