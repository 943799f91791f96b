"""The logins of all upstreams together, and the channel that shows their tokens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import keyring
import keyring.backends.fail
import pytest

from mcpproxy.config.models import OAuth, Server
from mcpproxy.upstream.oauth import LoginFailed, Logins, NeedsLogin
from mcpproxy.upstream.oauth.session import OAuthSession
from mcpproxy.upstream.server import Login
from mcpproxy.wire.http import HttpChannel

if TYPE_CHECKING:
    from tests.upstream.oauth_server import AuthorizationServer, browse, protected_upstream
else:
    from oauth_server import AuthorizationServer, browse, protected_upstream

CALLBACK = "http://127.0.0.1:8080/oauth/callback"
INITIALIZE = json.dumps(
    {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
).encode()


@pytest.fixture(autouse=True)
def no_keyring() -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())  # type: ignore[no-untyped-call]


@pytest.fixture
def provider() -> AuthorizationServer:
    return AuthorizationServer()


@pytest.fixture
def url(provider: AuthorizationServer) -> Iterator[str]:
    with protected_upstream(provider) as address:
        yield address


def session_of(logins: Logins, server: Server) -> OAuthSession:
    session = logins.session(server)
    assert session is not None
    return session


async def initialize(url: str, session: OAuthSession) -> bytes:
    channel = HttpChannel(url, headers={}, max_result_bytes=1_000_000, credentials=session)
    try:
        return await channel.call_raw("initialize", INITIALIZE, timeout=10)
    finally:
        await channel.close()


def test_the_answer_goes_to_the_upstream_whose_login_waits_for_it(
    url: str, provider: AuthorizationServer, tmp_path: Path
) -> None:
    async def story() -> None:
        woken: list[str] = []
        logins = Logins(tmp_path, redirect_uri=CALLBACK, on_login=woken.append)
        for name in ("one", "two"):
            await session_of(logins, Server(name=name, url=url)).begin_login()
        two = logins.named("two")
        assert two is not None
        brought = await browse(two.login_url or "")
        with pytest.raises(LoginFailed, match="no login is waiting"):
            await logins.finish({**brought, "state": "forged"})
        assert await logins.finish(brought) == "two"
        await logins.close()
        assert woken == ["two"]
        assert len(provider.access) == 1

    asyncio.run(story())


def test_a_session_lasts_until_the_server_is_configured_differently(tmp_path: Path) -> None:
    async def story() -> None:
        logins = Logins(tmp_path)
        server = Server(name="notes", url="https://notes.example/mcp")
        first = logins.session(server)
        assert first is not None
        assert logins.session(Server(name="notes", url=server.url, disabled_tools=("x",))) is first
        changed = logins.session(Server(name="notes", url=server.url, oauth=OAuth(scopes=("read",))))
        assert changed is not first
        assert logins.named("notes") is changed
        assert logins.named("unknown") is None
        await logins.close()

    asyncio.run(story())


def test_a_server_with_a_command_or_a_header_of_its_own_has_no_login(tmp_path: Path) -> None:
    logins = Logins(tmp_path)
    assert logins.session(Server(name="local", command="notes")) is None
    assert logins.session(Server(name="keyed", url="https://x.example", headers={"authorization": "Bearer k"})) is None


def test_a_channel_says_why_a_login_is_needed_and_works_after_it(
    url: str, provider: AuthorizationServer, tmp_path: Path
) -> None:
    async def story() -> None:
        logins = Logins(tmp_path, redirect_uri=CALLBACK)
        session = session_of(logins, Server(name="notes", url=url))
        with pytest.raises(NeedsLogin, match="the server asks for a login"):
            await initialize(url, session)
        life: Login = session  # what an upstream's life asks for the link
        await logins.finish(await browse(await life.login_link() or ""))
        assert b'"protected"' in await initialize(url, session)
        provider.access.clear()
        restarted = session_of(Logins(tmp_path, redirect_uri=CALLBACK), Server(name="notes", url=url))
        assert b'"protected"' in await initialize(url, restarted)
        assert provider.refreshes == 1

    asyncio.run(story())
