"""Is each server well? Found, started, listed, and how long that took; or what the daemon says of it."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.doctor.finding import Finding, broken, note, ok, warning

if TYPE_CHECKING:
    from mcpproxy.app import App
    from mcpproxy.cli.session import Session
    from mcpproxy.config.models import Server

_PATIENCE: Final = 30.0
_FIXES: Final = {
    "needs_login": "Log in: mcpproxy upstream login {name}",
    "quarantined": "Look at it, then: mcpproxy upstream approve {name}",
    "disabled": "",
    "connecting": "Wait a moment, and ask again.",
}


def check_servers(session: Session) -> Iterator[Finding]:
    """Each server of the configuration."""
    if not session.config.servers:
        yield note("servers", "none is configured", "Add one: mcpproxy upstream add NAME -- npx -y PACKAGE")
        return
    if session.daemon is not None:
        from mcpproxy.cli.screen import value_of

        for found in value_of(session.daemon.get("/servers"))["servers"]:
            yield _as_told(found)
        return
    live = [server for server in session.config.servers if server.enabled and not server.quarantined]
    for server in session.config.servers:
        if server not in live:
            state = "quarantined" if server.enabled else "disabled"
            yield note(server.name, f"is {state}", _FIXES[state].format(name=server.name))
    with session.screen.working("Starting the servers"):
        findings = asyncio.run(_try_all(session, live))
    yield from findings


def _as_told(found: dict[str, Any]) -> Finding:
    name, state = found["name"], found["state"]
    reason = f": {found['reason']}" if found.get("reason") else ""
    if state == "ready":
        return ok(name, f"is ready, {looks.plural(found['tools'], 'tool')}")
    fix = _FIXES.get(state, "What it said: mcpproxy upstream logs {name}").format(name=name)
    if state in ("disabled", "connecting", "quarantined"):
        return note(name, f"is {state}{reason}", fix)
    return broken(name, f"is {state}{reason}", fix)


async def _try_all(session: Session, servers: list[Server]) -> list[Finding]:
    from mcpproxy.cli.alone import app_with

    findable = [server for server in servers if _missing_command(server) is None]
    lost = [_not_found(server) for server in servers if server not in findable]
    if not findable:
        return lost
    async with app_with(session, [server.name for server in findable]).running() as app:
        tried = await asyncio.gather(*(_try(app, server) for server in findable))
    return [*lost, *tried]


def _missing_command(server: Server) -> str | None:
    """The command of a server that is nowhere to be found."""
    command = server.command
    if command is None or "${" in command or shutil.which(command) is not None:
        return None
    return command


def _not_found(server: Server) -> Finding:
    command = server.command or ""
    package = {"npx": "Install Node.js.", "uvx": "Install uv.", "docker": "Install Docker."}.get(command)
    fix = package or f"Install it, or give its whole path; `command -v {command}` must find it."
    return broken(server.name, f"its command {command!r} is not found", fix)


async def _try(app: App, server: Server) -> Finding:
    from mcpproxy.upstream.server import NotReady

    upstream = app.pool.get(server.name)
    assert upstream is not None
    began = time.monotonic()
    try:
        await upstream.ready(_PATIENCE)
    except NotReady as error:
        fix = _FIXES.get(str(error.state), "What it said: mcpproxy upstream logs {name}").format(name=server.name)
        last = f" (last words: {upstream.log.last_error[:200]})" if upstream.log.last_error else ""
        return broken(server.name, f"is {error.state}: {error.reason}{last}", fix)
    took = looks.duration((time.monotonic() - began) * 1000)
    listing = app.catalog.snapshot.listings.get(server.name)
    count = len(listing.tools) if listing is not None else 0
    if not count and app.catalog.snapshot.waiting_of(server.name):
        return note(
            server.name,
            f"started in {took}; all its tools wait for your approval",
            f"Look at them: mcpproxy tools diff {server.name}",
        )
    if not count:
        return warning(
            server.name, f"started in {took} and lists no tools", f"See: mcpproxy upstream logs {server.name}"
        )
    return ok(server.name, f"started in {took}, {looks.plural(count, 'tool')}")
