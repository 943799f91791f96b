"""How does a person log in to a server? By a link that is printed here, and opened in a browser."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli.clean import clean
from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.cli.screen import value_of
from mcpproxy.cli.upstream.change import known, settled

if TYPE_CHECKING:
    from mcpproxy.cli.daemon import Daemon
    from mcpproxy.cli.session import Session

_LIFETIME: Final = 600.0
_LOOK_EVERY: Final = 0.5


def log_in(session: Session, name: str) -> dict[str, Any]:
    """Print the link, wait for the person, and give how the server is then."""
    if session.daemon is not None:
        return _through(session, session.daemon, name)
    return asyncio.run(_alone(session, name))


def _through(session: Session, daemon: Daemon, name: str) -> dict[str, Any]:
    from mcpproxy.cli.daemon import segment

    path = f"/servers/{segment(name)}"
    _show(session, name, value_of(daemon.post(f"{path}/login"))["login_url"])
    deadline = time.monotonic() + _LIFETIME
    while time.monotonic() < deadline:
        found: dict[str, Any] = value_of(daemon.get(path))
        if found["state"] != "needs_login":
            return settled(session, daemon, name, wait=True)
        time.sleep(_LOOK_EVERY)
    raise Failure(FAILED, f"nobody logged in to {name} within {_LIFETIME / 60:.0f} minutes.", "Start it again.")


async def _alone(session: Session, name: str) -> dict[str, Any]:
    """Without a daemon the browser comes back to a port that is open for this login only."""
    from mcpproxy.config.mask import Masker
    from mcpproxy.config.secrets import SecretMissing, expand
    from mcpproxy.upstream.oauth import LoginFailed, Logins

    try:
        server = expand(known(session, name), Masker())
    except SecretMissing as error:
        raise Failure(FAILED, f"{error}.") from None
    logins = Logins(session.data_dir)
    try:
        login = logins.session(server)
        if login is None:
            raise Failure(FAILED, f"server {name!r} is not one that is logged in to: it has no URL, or its own key.")
        _show(session, name, await login.begin_login())
        await login.login_finished()
    except LoginFailed as error:
        raise Failure(FAILED, f"the login failed: {error}.", "See: docs/oauth.md") from None
    finally:
        await logins.close()
    return {"name": name, "state": "disconnected", "reason": "you are logged in; it connects when it is needed"}


def _show(session: Session, name: str, link: str) -> None:
    # On stderr and in every mode: a person waits for it, and stdout is for how it ended.
    sys.stderr.write(f"Open this link to log in to {clean(name)}:\n  {clean(link)}\n")
    session.screen.note("Waiting for you to finish in the browser. Stop with Ctrl-C.")
