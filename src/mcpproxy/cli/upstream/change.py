"""How does a change come into force? Through the daemon at once, else in the file for the next start."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.cli.screen import value_of

if TYPE_CHECKING:
    from mcpproxy.cli.daemon import Daemon
    from mcpproxy.cli.session import Session
    from mcpproxy.config.models import Server

LATER: Final = "No daemon is running: it takes effect at the next start."
_STARTING: Final = ("connecting", "disconnected")
_PATIENCE: Final = 60.0
_SWITCHES: Final[dict[str, dict[str, bool]]] = {
    "enable": {"enabled": True},
    "disable": {"enabled": False},
    "quarantine": {"quarantined": True},
    "approve": {"quarantined": False},
}


def add(session: Session, server: Server, entry: dict[str, Any], *, wait: bool, quiet: bool = False) -> dict[str, Any]:
    """Add a server; gives how it is."""
    if session.daemon is not None:
        session.daemon.post("/servers", entry)
        return settled(session, session.daemon, server.name, wait=wait)
    from mcpproxy.config.write import set_server

    if any(known.name == server.name for known in session.config.servers):
        message = f"there is a server named {server.name!r} already."
        raise Failure(FAILED, message, f"Take it out first: mcpproxy upstream remove {server.name}", code="CONFLICT")
    _write(session, lambda document: set_server(document, server), quiet=quiet)
    return offline(server)


def remove(session: Session, name: str) -> None:
    """Take a server out."""
    if session.daemon is not None:
        from mcpproxy.cli.daemon import segment

        session.daemon.delete(f"/servers/{segment(name)}")
        return
    from mcpproxy.config.write import remove_server

    known(session, name)
    _write(session, lambda document: remove_server(document, name))


def switch(session: Session, name: str, action: str) -> dict[str, Any]:
    """Enable, disable, quarantine or approve a server; gives how it is."""
    if session.daemon is not None:
        return act(session, session.daemon, name, action)
    from mcpproxy.config.write import set_server

    server = structs.replace(known(session, name), **_SWITCHES[action])
    if action == "approve":
        from mcpproxy.cli.tools.trust import release

        release(session, name)
    _write(session, lambda document: set_server(document, server))
    return offline(server)


def act(session: Session, daemon: Daemon, name: str, action: str) -> dict[str, Any]:
    """Have the daemon do something with a server, and wait for what comes of it."""
    from mcpproxy.cli.daemon import segment

    daemon.post(f"/servers/{segment(name)}/{action}")
    return settled(session, daemon, name, wait=True)


def settled(session: Session, daemon: Daemon, name: str, *, wait: bool) -> dict[str, Any]:
    """How a server is, once it is no longer just starting."""
    from mcpproxy.cli.daemon import segment

    deadline = time.monotonic() + (_PATIENCE if wait else 0)
    with session.screen.working(f"Waiting for {name}"):
        while True:
            found: dict[str, Any] = value_of(daemon.get(f"/servers/{segment(name)}"))
            if found["state"] not in _STARTING or time.monotonic() > deadline:
                return found
            time.sleep(0.1)


def known(session: Session, name: str) -> Server:
    """The server of that name in the configuration."""
    for server in session.config.servers:
        if server.name == name:
            return server
    raise Failure(FAILED, f"there is no server named {name!r}.", "See: mcpproxy upstream list", code="UNKNOWN_SERVER")


def offline(server: Server) -> dict[str, Any]:
    """How a server is while no daemon runs."""
    from mcpproxy.config.mask import masked

    state = "disabled" if not server.enabled else "quarantined" if server.quarantined else "disconnected"
    protocol = server.protocol or ("stdio" if server.command is not None else None)
    return {"name": server.name, "state": state, "protocol": protocol, "tools": None, "config": masked(server)}


def _write(session: Session, mutate: Callable[[dict[str, Any]], object], *, quiet: bool = False) -> None:
    from mcpproxy.config.write import update

    def change(document: dict[str, Any]) -> None:
        mutate(document)

    update(session.loaded.path, change)
    if not quiet:
        session.screen.note(LATER)
