"""How does a person log in to a server, and out? In by a link that is printed here, and opened in a browser."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli.clean import clean
from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.cli.screen import value_of
from mcpproxy.cli.upstream.change import act, known, settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcpproxy.cli.daemon import Daemon
    from mcpproxy.cli.session import Session
    from mcpproxy.upstream.oauth.session import OAuthSession

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
    from mcpproxy.upstream.oauth import LoginFailed

    async with _login_of(session, name) as login:
        try:
            _show(session, name, await login.begin_login())
            await login.login_finished()
        except LoginFailed as error:
            raise Failure(FAILED, f"the login failed: {error}.", "See: docs/oauth.md") from None
    return {"name": name, "state": "disconnected", "reason": "you are logged in; it connects when it is needed"}


def log_out(session: Session, name: str) -> dict[str, Any]:
    """Have the login forgotten, and give how the server is then."""
    if session.daemon is not None:
        return act(session, session.daemon, name, "logout")
    return asyncio.run(_log_out_alone(session, name))


async def _log_out_alone(session: Session, name: str) -> dict[str, Any]:
    async with _login_of(session, name) as login:
        await login.logout()
    return {"name": name, "state": "disconnected", "reason": "you are logged out"}


@asynccontextmanager
async def _login_of(session: Session, name: str) -> AsyncIterator[OAuthSession]:
    from mcpproxy.config.mask import Masker
    from mcpproxy.config.secrets import SecretMissing, expand
    from mcpproxy.upstream.oauth import LoginFailed, Logins

    logins = Logins(session.data_dir)
    try:
        yield logins.needed(expand(known(session, name), Masker()))
    except (SecretMissing, LoginFailed) as error:
        raise Failure(FAILED, f"{error}.") from None
    finally:
        await logins.close()


def _show(session: Session, name: str, link: str) -> None:
    # On stderr and in every mode: a person waits for it, and stdout is for how it ended.
    sys.stderr.write(f"Open this link to log in to {clean(name)}:\n  {clean(link)}\n")
    session.screen.note("Waiting for you to finish in the browser. Stop with Ctrl-C.")
