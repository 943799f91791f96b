"""`mcpproxy status`: is it running, and how is it?"""

from __future__ import annotations

from typing import Any

import typer

from mcpproxy.cli.examples import examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("mcpproxy status", "mcpproxy status -o json"))(status)


def status(context: typer.Context) -> None:
    """Say whether the daemon runs, with what, and what needs you.

    Exit code 7 where no daemon runs.
    """
    from mcpproxy.cli.screen import value_of

    session = context.obj
    daemon = session.need_daemon("status")
    found = daemon.get("/status")
    servers, waiting = [], []
    if session.options.output == "table":
        servers = value_of(daemon.get("/servers"))["servers"]
        waiting = value_of(daemon.get("/tools/waiting"))["waiting"]

    def draw() -> None:
        _print(session.screen, value_of(found), servers, daemon.where)
        _print_waiting(session.screen, waiting)

    session.screen.show(found, draw)


def _print(screen: Any, found: dict[str, Any], servers: list[dict[str, Any]], where: str) -> None:
    import time
    from datetime import datetime

    from mcpproxy.cli import looks

    up = time.time() - datetime.fromisoformat(found["started_at"]).timestamp()
    counts = found["servers"]
    config = found["config"]
    good = counts["ready"] == counts["total"]
    screen.line(
        ("mcpproxy " + found["version"], "bold"), f" has been running for {looks.duration(up * 1000)} ({where})"
    )
    screen.line("  endpoint  ", f"http://{found['listen']}/mcp" if found["listen"] else "stdio")
    screen.line("  servers   ", (f"{counts['ready']} of {counts['total']} ready", "green" if good else "yellow"))
    screen.line("  tools     ", str(found["tools"]))
    screen.line("  config    ", config["path"])
    if config.get("error"):
        screen.line(
            "  ", (f"The file has changed and does not load; the old one is in force: {config['error']}", "red")
        )
    if found.get("activity", {}).get("error"):
        screen.line("  ", (f"Nothing can be put on record: {found['activity']['error']}", "red"))
    for server in servers:
        if server["state"] not in ("ready", "disabled"):
            reason = f": {server['reason']}" if server.get("reason") else ""
            screen.line("  ! ", (server["name"], "bold"), f" is {server['state']}{reason}")


def _print_waiting(screen: Any, waiting: list[dict[str, Any]]) -> None:
    """Count the tools that nobody has decided about; those that were refused need nobody."""
    undecided = sum(tool["state"] != "rejected" for tool in waiting)
    if undecided:
        which = "1 tool waits" if undecided == 1 else f"{undecided} tools wait"
        screen.line("  ! ", f"{which} for your approval: mcpproxy tools diff")
