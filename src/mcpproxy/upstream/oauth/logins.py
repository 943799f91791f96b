"""Whose login is it? One session for each upstream that may ask for one, and the browser's answer to the right one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mcpproxy.config.models import Server
from mcpproxy.upstream.oauth.errors import LoginFailed
from mcpproxy.upstream.tokens import TokenStore

if TYPE_CHECKING:
    from mcpproxy.upstream.oauth.session import OAuthSession


class Logins:
    """The sessions of all upstreams of one proxy.

    A session outlives the connections made with it, so that a pending login survives a reconnect.
    """

    def __init__(
        self, data_dir: Path, *, redirect_uri: str | None = None, on_login: Callable[[str], None] | None = None
    ) -> None:
        self.store = TokenStore(data_dir)
        self._redirect_uri = redirect_uri
        self._on_login = on_login
        self._sessions: dict[str, tuple[Server, OAuthSession]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def session(self, server: Server) -> OAuthSession | None:
        """The session of this upstream; None where it has no URL, or a header of its own says who we are."""
        if server.url is None or any(name.lower() == "authorization" for name in server.headers):
            return None
        before = self._sessions.get(server.name)
        if before is not None:
            if (before[0].url, before[0].oauth) == (server.url, server.oauth):
                return before[1]
            self._retire(before[1])
        from mcpproxy.upstream.oauth.session import OAuthSession  # with the HTTP client, which few need

        session = OAuthSession(
            server.name,
            server.url,
            server.oauth,
            self.store,
            redirect_uri=self._redirect_uri,
            on_login=lambda: self._logged_in(server.name),
        )
        self._sessions[server.name] = (server, session)
        return session

    def needed(self, server: Server) -> OAuthSession:
        """The same for whoever cannot go on without; raises LoginFailed where there is none."""
        session = self.session(server)
        if session is None:
            raise LoginFailed(f"server {server.name!r} is not one that is logged in to: it has no URL, or its own key")
        return session

    def named(self, name: str) -> OAuthSession | None:
        """The session of the upstream of this name, once it was asked for."""
        found = self._sessions.get(name)
        return found[1] if found is not None else None

    async def finish(self, brought: Mapping[str, str]) -> str:
        """Hand the browser's query to the login that waits for it; gives the upstream's name or raises LoginFailed."""
        for name, (_, session) in self._sessions.items():
            if session.expects(brought.get("state")):
                await session.finish_login(brought)
                return name
        raise LoginFailed("no login is waiting for this answer; it may be over. Start it again")

    async def close(self) -> None:
        """End all logins under way."""
        for _, session in self._sessions.values():
            self._retire(session)
        self._sessions.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    def _logged_in(self, name: str) -> None:
        if self._on_login is not None:
            self._on_login(name)

    def _retire(self, session: OAuthSession) -> None:
        task = asyncio.create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
