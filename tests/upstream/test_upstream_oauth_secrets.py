"""No secret of a login reaches a log, an error or a traceback, whatever the servers answer."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.upstream.oauth_hostile import CALLBACK, HostileServer, no_keyring, no_process, server, session_for
from tests.upstream.oauth_server import AuthorizationServer, browse, call, protected_upstream

from mcpproxy.config.models import OAuth
from mcpproxy.upstream.oauth import AuthUnavailable, LoginFailed, NeedsLogin
from mcpproxy.upstream.oauth.session import OAuthSession
from mcpproxy.upstream.tokens import TokenStore

__all__ = ["no_keyring", "no_process", "server"]


class Overheard:
    """Everything that anybody could have read: logs at DEBUG, exception texts, whole tracebacks."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        self._caplog = caplog
        self._texts: list[str] = []

    async def failing(self, work: Callable[[], Awaitable[Any]]) -> None:
        with pytest.raises((LoginFailed, NeedsLogin, AuthUnavailable)) as failed:
            await work()
        error: BaseException | None = failed.value
        while error is not None:
            self._texts += [str(error), repr(error), *traceback.format_exception(error)]
            error = error.__cause__ or error.__context__

    @property
    def text(self) -> str:
        # The servers of the test run in this process too; what they write is theirs.
        ours = (record for record in self._caplog.records if not record.name.startswith(("mcp.server", "uvicorn")))
        formatter = logging.Formatter("%(name)s %(message)s")
        return "\n".join([*self._texts, *(formatter.format(record) for record in ours)])


CODE = "CANARY-code"  # by name, since tracebacks quote the lines of this file
LEAKY_ANSWERS = [
    (400, {"error": "invalid_grant", "error_description": "CANARY-described"}),
    (400, b"CANARY-plain"),
    (200, {"access_token": ["CANARY-access"], "refresh_token": "CANARY-refresh"}),
    (200, {"error": "CANARY said the server at length", "access_token": "CANARY-access", "token_type": "mac"}),
    (500, b"CANARY-stack"),
    (302, b"CANARY-moved"),
]


@pytest.mark.parametrize(("status", "body"), LEAKY_ANSWERS)
def test_no_secret_in_a_token_endpoints_answer_reaches_a_log_or_an_error(
    server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int, body: object
) -> None:
    overheard = Overheard(caplog)
    good = {
        "access_token": "CANARY-first",
        "refresh_token": "CANARY-renewer",
        "expires_in": 3600,
        "token_type": "bearer",
    }
    oauth = OAuth(client_id="ours", client_secret="CANARY-config-secret")

    async def log_in(login: OAuthSession) -> None:
        state = parse_qs(urlsplit(await login.begin_login()).query)["state"][0]
        await login.finish_login({"code": CODE, "state": state})

    async def story() -> None:
        server.say("/token", status, body, Location=f"{server.origin}/else?x=CANARY-query")
        await overheard.failing(lambda: log_in(session_for(server, tmp_path, oauth)))
        server.say("/token", 200, good)
        login = session_for(server, tmp_path, oauth)
        await log_in(login)
        server.say("/token", status, body)
        fresh = session_for(server, tmp_path, oauth)
        assert await fresh.header() == "Bearer CANARY-first"
        await overheard.failing(lambda: fresh.unauthorized(None))

    asyncio.run(story())
    assert "notes: the login failed: the token endpoint gave no usable token" in overheard.text
    assert "CANARY" not in overheard.text


@pytest.mark.parametrize(
    "body",
    [
        {"client_secret": "CANARY-client", "redirect_uris": 7},
        {"client_id": "x", "client_secret": "CANARY-client", "token_endpoint_auth_method": "private_key_jwt"},
        b"CANARY-plain",
    ],
)
def test_no_secret_in_a_registration_reaches_a_log_or_an_error(
    server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, body: object
) -> None:
    overheard = Overheard(caplog)
    server.say("/register", 201, body)
    asyncio.run(overheard.failing(session_for(server, tmp_path).begin_login))
    assert "could not register" in overheard.text
    assert "CANARY" not in overheard.text


def test_an_upstreams_url_keeps_its_secrets_in_logs_errors_and_requests(
    server: HostileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    overheard = Overheard(caplog)
    server.say(
        "/.well-known/oauth-protected-resource",
        200,
        {"resource": "https://x.example", "authorization_servers": ["https://x.example"]},
    )

    async def story() -> None:
        host = urlsplit(server.origin).netloc
        url = f"http://CANARY-user:CANARY-password@{host}/CANARY-path/mcp?key=CANARY-key"
        login = OAuthSession("notes", url, None, TokenStore(tmp_path), redirect_uri=CALLBACK)
        await overheard.failing(login.begin_login)

    asyncio.run(story())
    assert "does not match expected this server" in overheard.text
    assert "CANARY" not in overheard.text


def test_a_whole_life_with_tokens_leaves_no_secret_in_the_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    overheard = Overheard(caplog)
    provider = AuthorizationServer()

    async def story(url: str) -> None:
        login = OAuthSession("notes", url, None, TokenStore(tmp_path), redirect_uri=CALLBACK)
        link = await login.begin_login()
        brought = await browse(link)
        provider.secrets += [brought["state"], brought["code"]]
        await login.finish_login(brought)
        provider.access.clear()
        again = OAuthSession("notes", url, None, TokenStore(tmp_path), redirect_uri=CALLBACK)
        assert (await call(url, await again.header()))[0] == 401
        assert await again.unauthorized(None)
        assert (await call(url, await again.header()))[0] == 200
        provider.revoke_everything()
        last = OAuthSession("notes", url, None, TokenStore(tmp_path), redirect_uri=CALLBACK)
        assert (await call(url, await last.header()))[0] == 401
        await overheard.failing(lambda: last.unauthorized(None))

    with protected_upstream(provider) as url:
        asyncio.run(story(url))
    assert len(provider.secrets) >= 7
    text = overheard.text
    assert "notes: logged in" in text
    assert "notes: the token was renewed" in text
    assert [secret for secret in provider.secrets if secret in text] == []
