"""A person logs in to an upstream: the SDK's own authorization server, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import keyring
import keyring.backends.fail
import pytest
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from mcpproxy.config.models import OAuth
from mcpproxy.upstream.oauth import LoginFailed, NeedsLogin, session
from mcpproxy.upstream.oauth.session import OAuthSession
from mcpproxy.upstream.tokens import TokenStore

if TYPE_CHECKING:
    from tests.upstream.oauth_server import AuthorizationServer, browse, browse_to_the_end, call, protected_upstream
else:
    from oauth_server import AuthorizationServer, browse, browse_to_the_end, call, protected_upstream

CALLBACK = "http://127.0.0.1:8080/oauth/callback"


@pytest.fixture(autouse=True)
def no_keyring() -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())  # type: ignore[no-untyped-call]


@pytest.fixture
def server() -> AuthorizationServer:
    return AuthorizationServer()


@pytest.fixture
def url(server: AuthorizationServer) -> Iterator[str]:
    with protected_upstream(server) as address:
        yield address


def session_for(url: str, folder: Path, oauth: OAuth | None = None, redirect: str | None = CALLBACK) -> OAuthSession:
    return OAuthSession("notes", url, oauth, TokenStore(folder), redirect_uri=redirect)


async def log_in(login: OAuthSession) -> None:
    await login.finish_login(await browse(await login.begin_login()))


def asked(link: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}


def test_a_first_login_registers_us_and_gives_a_token_that_the_upstream_takes(
    url: str, server: AuthorizationServer, tmp_path: Path
) -> None:
    async def story() -> None:
        woken: list[str] = []
        login = OAuthSession(
            "notes", url, None, TokenStore(tmp_path), redirect_uri=CALLBACK, on_login=lambda: woken.append("notes")
        )
        status, challenge = await call(url, await login.header())
        assert status == 401
        with pytest.raises(NeedsLogin, match="asks for a login"):
            await login.unauthorized(challenge)

        link = await login.begin_login()
        shown = login.login_url
        assert shown == link
        assert asked(link)["code_challenge_method"] == "S256"
        assert asked(link)["resource"] == url
        await login.finish_login(await browse(link))

        assert login.login_url is None
        assert (await call(url, await login.header()))[0] == 200
        assert server.registrations == 1
        assert [client.client_name for client in server.clients.values()] == ["mcpproxy"]
        await asyncio.sleep(0)
        assert woken == ["notes"]

    asyncio.run(story())


def test_without_a_daemon_the_browser_comes_back_to_a_port_opened_for_this_login(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path, redirect=None)
        link = await login.begin_login()
        port = urlsplit(asked(link)["redirect_uri"]).port
        status, page = await browse_to_the_end(link)
        assert (status, "You are logged in" in page) == (200, True)
        await login.login_finished()
        assert (await call(url, await login.header()))[0] == 200
        await login.close()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port or 0)) != 0

    asyncio.run(story())


def test_the_browser_is_told_when_the_login_was_denied(url: str, server: AuthorizationServer, tmp_path: Path) -> None:
    async def story() -> None:
        server.denies = True
        login = session_for(url, tmp_path, redirect=None)
        status, page = await browse_to_the_end(await login.begin_login())
        assert (status, "The login failed" in page, "denied (access_denied)" in page) == (400, True, True)
        with pytest.raises(LoginFailed, match="denied"):
            await login.login_finished()
        assert await login.header() is None

    asyncio.run(story())


def test_an_answer_with_a_wrong_state_is_refused_and_leaves_the_login_waiting(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path)
        brought = await browse(await login.begin_login())
        for state in ("guessed", "", None):
            forged = {"code": "stolen"} if state is None else {"code": "stolen", "state": state}
            with pytest.raises(LoginFailed, match="no login is waiting"):
                await login.finish_login(forged)
        await login.finish_login(brought)
        assert await login.header() is not None
        with pytest.raises(LoginFailed, match="no login is waiting"):
            await login.finish_login(brought)

    asyncio.run(story())


def test_an_answer_from_another_issuer_is_refused(url: str, server: AuthorizationServer, tmp_path: Path) -> None:
    async def story() -> None:
        server.issuer_in_answer = "https://attacker.example"
        login = session_for(url, tmp_path)
        with pytest.raises(LoginFailed, match="iss mismatch"):
            await log_in(login)
        assert await login.header() is None
        assert not server.access

    asyncio.run(story())


def test_several_upstreams_may_wait_for_a_person_at_once(tmp_path: Path) -> None:
    async def story(first_url: str, second_url: str) -> None:
        sessions = [session_for(first_url, tmp_path), session_for(second_url, tmp_path)]
        links = await asyncio.gather(*(login.begin_login() for login in sessions))
        for link in reversed(links):
            brought = await browse(link)
            [waiting] = [login for login in sessions if login.expects(brought["state"])]
            await waiting.finish_login(brought)
        headers = [await login.header() for login in sessions]
        assert headers[0] != headers[1]
        assert (await call(first_url, headers[0]))[0] == 200
        assert (await call(second_url, headers[1]))[0] == 200

    with protected_upstream(AuthorizationServer()) as first, protected_upstream(AuthorizationServer()) as second:
        asyncio.run(story(first, second))


def test_a_link_for_whoever_comes_by_stays_the_same_until_a_person_asks_for_a_new_one(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path)
        link = await login.login_link()
        assert link is not None
        assert await login.login_link() == link
        stale = await browse(link)
        newer = await login.begin_login()
        assert newer != link
        assert await login.login_link() == newer
        with pytest.raises(LoginFailed, match="no login is waiting"):
            await login.finish_login(stale)
        await login.finish_login(await browse(newer))
        assert (await call(url, await login.header()))[0] == 200

    asyncio.run(story())


def test_two_who_ask_at_the_same_moment_get_the_same_link(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path)
        assert len(set(await asyncio.gather(login.begin_login(), login.begin_login(), login.login_link()))) == 1
        await login.close()

    asyncio.run(story())


def test_a_cancelled_login_takes_no_answer(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path)
        brought = await browse(await login.begin_login())
        await login.cancel_login()
        assert login.login_url is None
        with pytest.raises(LoginFailed, match="cancelled"):
            await login.login_finished()
        with pytest.raises(LoginFailed, match="no login is waiting"):
            await login.finish_login(brought)

    asyncio.run(story())


def test_a_login_that_nobody_finishes_ends_by_itself(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path)
        monkeypatch.setattr(session, "LOGIN_LIFETIME", 0.5)
        with pytest.raises(LoginFailed, match="nobody finished the login"):
            await login.begin_login()
            await login.login_finished()
        assert login.login_url is None

    asyncio.run(story())


def test_a_client_that_the_server_forgot_is_registered_anew_at_the_second_try(
    url: str, server: AuthorizationServer, tmp_path: Path
) -> None:
    async def story() -> None:
        await log_in(session_for(url, tmp_path))
        again = session_for(url, tmp_path)
        await again.begin_login()
        assert server.registrations == 1  # the client of the first login still fits
        server.clients.clear()
        await log_in(again)
        assert server.registrations == 2
        assert (await call(url, await again.header()))[0] == 200

    asyncio.run(story())


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_operators_own_client_and_scopes_are_used_as_given(
    server: AuthorizationServer, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp.server.auth import routes

    original = routes.build_metadata

    def offering_one_method(*args: object, **kwargs: object) -> object:
        metadata = original(*args, **kwargs)  # type: ignore[arg-type]
        metadata.token_endpoint_auth_methods_supported = [method]
        return metadata

    monkeypatch.setattr(routes, "build_metadata", offering_one_method)
    server.clients["ours"] = OAuthClientInformationFull(
        client_id="ours",
        client_secret="CANARY-config-secret",
        token_endpoint_auth_method=method,
        redirect_uris=[AnyUrl(CALLBACK)],
        scope="read write admin",
    )
    oauth = OAuth(client_id="ours", client_secret="CANARY-config-secret", scopes=("read", "write"))

    async def story(url: str) -> None:
        login = session_for(url, tmp_path, oauth)
        link = await login.begin_login()
        assert (asked(link)["client_id"], asked(link)["scope"]) == ("ours", "read write")
        await login.finish_login(await browse(link))
        assert (await call(url, await login.header()))[0] == 200
        assert server.registrations == 0
        # The secret stands in the configuration; a copy in the store would outlive a change there.
        assert not any("CANARY-config-secret" in file.read_text() for file in (tmp_path / "oauth").iterdir())

    with protected_upstream(server, scopes=["read", "write", "admin"]) as url:
        asyncio.run(story(url))


def test_the_operators_redirect_uri_gets_its_own_port_where_the_proxy_does_not_listen(url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        oauth = OAuth(redirect_uri=f"http://localhost:{port}/back")

        async def refused() -> None:
            with pytest.raises(LoginFailed, match=f"cannot listen on 127.0.0.1:{port}"):
                await session_for(url, tmp_path, oauth).begin_login()

        asyncio.run(refused())

    async def story() -> None:
        login = session_for(url, tmp_path, oauth)
        link = await login.begin_login()
        assert asked(link)["redirect_uri"] == f"http://localhost:{port}/back"
        assert (await browse_to_the_end(link))[0] == 200
        await login.login_finished()

    asyncio.run(story())


def test_a_call_that_needs_more_scopes_asks_for_a_login_that_keeps_the_old_ones(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    async def story(url: str) -> None:
        login = session_for(url, tmp_path)
        server.grants = ["read"]
        await log_in(login)
        status, challenge = await call(url, await login.header())
        assert status == 403
        with pytest.raises(NeedsLogin, match="more scopes") as refused:
            await login.unauthorized(challenge)
        assert refused.value.status == 403

        server.grants = None
        link = await login.begin_login()
        assert set(asked(link)["scope"].split()) == {"read", "write"}
        await login.finish_login(await browse(link))
        assert (await call(url, await login.header()))[0] == 200

    with protected_upstream(server, scopes=["read", "write"], required=["read", "write"]) as url:
        asyncio.run(story(url))


def test_the_next_login_asks_for_what_was_granted_before_too(server: AuthorizationServer, tmp_path: Path) -> None:
    async def story(url: str) -> None:
        login = session_for(url, tmp_path)
        server.grants = ["read", "extra"]
        await log_in(login)
        _, challenge = await call(url, await login.header())
        with pytest.raises(NeedsLogin):
            await login.unauthorized(challenge)
        assert set(asked(await login.begin_login())["scope"].split()) == {"read", "extra", "write"}
        await login.close()

    with protected_upstream(server, scopes=["read", "write", "extra"], required=["read", "write"]) as url:
        asyncio.run(story(url))


def test_scopes_that_the_operator_did_not_list_are_his_to_add(server: AuthorizationServer, tmp_path: Path) -> None:
    async def story(url: str) -> None:
        login = session_for(url, tmp_path, OAuth(scopes=("read",)))
        await log_in(login)
        _, challenge = await call(url, await login.header())
        with pytest.raises(NeedsLogin, match=r"more scopes than oauth\.scopes lists"):
            await login.unauthorized(challenge)
        assert asked(await login.begin_login())["scope"] == "read"
        await login.close()

    with protected_upstream(server, scopes=["read", "write"], required=["read", "write"]) as url:
        asyncio.run(story(url))


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /favicon.ico?state=guessed&code=x HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /oauth/callback?state=guessed&code=x HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /oauth/callback?state=guessed&code=x HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://[ \r\n\r\n", b"400"),
        (b"\xff\xff\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 100_000, b"400"),
        (b"", b"400"),
    ],
)
def test_whoever_else_visits_the_port_of_a_login_does_not_disturb_it(
    url: str, tmp_path: Path, head: bytes, status: bytes
) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path, redirect=None)
        link = await login.begin_login()
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(asked(link)["redirect_uri"]).port)
        writer.write(head)
        writer.write_eof()
        with contextlib.suppress(ConnectionError):  # a flood is cut off, not read to its end
            assert (await reader.read()).startswith(b"HTTP/1.1 " + status)
        writer.close()
        assert (await browse_to_the_end(link))[0] == 200
        await login.login_finished()

    asyncio.run(story())


def test_after_a_logout_nothing_is_left(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path)
        await log_in(login)
        await login.logout()
        assert await login.header() is None
        assert await session_for(url, tmp_path).header() is None
        assert not list((tmp_path / "oauth").glob("*.json"))

    asyncio.run(story())
