"""A token is kept fresh: ahead of its end, after a restart, once for everybody, and honestly when it cannot be."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import keyring
import keyring.backends.fail
import pytest

from mcpproxy.config.models import OAuth
from mcpproxy.upstream.oauth import AuthUnavailable, NeedsLogin
from mcpproxy.upstream.oauth.session import OAuthSession
from mcpproxy.upstream.tokens import Identity, TokenStore
from mcpproxy.wire.errors import Unauthorized
from mcpproxy.wire.http import Credentials

if TYPE_CHECKING:
    from tests.upstream.oauth_server import AuthorizationServer, browse, call, protected_upstream
else:
    from oauth_server import AuthorizationServer, browse, call, protected_upstream

CALLBACK = "http://127.0.0.1:8080/oauth/callback"
HOUR = 3600.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


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


@pytest.fixture
def clock() -> Clock:
    return Clock()


def session_for(url: str, folder: Path, clock: Clock) -> OAuthSession:
    return OAuthSession("notes", url, None, TokenStore(folder), redirect_uri=CALLBACK, clock=clock)


async def logged_in(url: str, folder: Path, clock: Clock) -> OAuthSession:
    login = session_for(url, folder, clock)
    await login.finish_login(await browse(await login.begin_login()))
    return login


def test_a_token_is_renewed_ahead_of_its_end_and_not_before(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        login = await logged_in(url, tmp_path, clock)
        first = await login.header()
        clock.ahead = HOUR - 120
        assert await login.header() == first
        assert server.refreshes == 0
        clock.ahead = HOUR - 30
        second = await login.header()
        assert second != first
        assert server.refreshes == 1
        assert (await call(url, second))[0] == 200

    asyncio.run(story())


def test_a_short_lived_token_is_not_renewed_at_every_call(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        server.lifetime = 30
        login = await logged_in(url, tmp_path, clock)
        first = await login.header()
        clock.ahead = 20
        assert await login.header() == first
        clock.ahead = 27
        assert await login.header() != first
        assert server.refreshes == 1

    asyncio.run(story())


def test_after_a_restart_the_token_is_renewed_by_the_end_that_was_kept(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        first = await (await logged_in(url, tmp_path, clock)).header()
        assert await session_for(url, tmp_path, clock).header() == first
        clock.ahead = HOUR - 30
        second = await session_for(url, tmp_path, clock).header()
        assert (second != first, server.refreshes) == (True, 1)
        assert (await call(url, second))[0] == 200
        # The rotated refresh token was kept too.
        clock.ahead = 2 * HOUR
        third = await session_for(url, tmp_path, clock).header()
        assert (third not in (first, second), server.refreshes) == (True, 2)
        assert server.registrations == 1

    asyncio.run(story())


def test_callers_at_the_same_moment_share_one_renewal(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        login = await logged_in(url, tmp_path, clock)
        clock.ahead = HOUR - 30
        headers = await asyncio.gather(*(login.header() for _ in range(50)))
        assert len(set(headers)) == 1
        assert server.refreshes == 1

        server.outage = 503
        clock.ahead = 3 * HOUR
        failures = await asyncio.gather(*(login.header() for _ in range(50)), return_exceptions=True)
        assert {type(failure) for failure in failures} == {AuthUnavailable}
        assert server.turned_away == 1

    asyncio.run(story())


def test_a_renewal_under_way_is_let_finish_when_the_proxy_stops(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> str | None:
        login = await logged_in(url, tmp_path, clock)
        first = await login.header()
        clock.ahead = HOUR - 30
        server.pause_after_refresh = 0.3
        asking = asyncio.create_task(login.header())
        while server.refreshes == 0:
            await asyncio.sleep(0.01)
        asking.cancel()
        await login.close()
        return first

    first = asyncio.run(story())
    assert asyncio.run(session_for(url, tmp_path, clock).header()) not in (None, first)
    assert server.refreshes == 1


def test_two_processes_on_one_data_dir_do_not_spend_the_same_refresh_token(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        await logged_in(url, tmp_path, clock)
        processes = [session_for(url, tmp_path, clock) for _ in range(4)]
        await asyncio.gather(*(process.header() for process in processes))
        clock.ahead = HOUR - 30
        headers = await asyncio.gather(*(process.header() for process in processes))
        assert len(set(headers)) == 1
        assert server.refreshes == 1

    asyncio.run(story())


def test_a_caller_that_walks_away_does_not_lose_the_rotated_token(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        login = await logged_in(url, tmp_path, clock)
        first = await login.header()
        clock.ahead = HOUR - 30
        server.pause_after_refresh = 0.3
        impatient = asyncio.create_task(login.header())
        while server.refreshes == 0:
            await asyncio.sleep(0.01)
        impatient.cancel()
        await asyncio.wait({impatient})
        assert impatient.cancelled()
        renewed = await login.header()
        assert renewed not in (None, first)
        assert server.refreshes == 1
        assert await session_for(url, tmp_path, clock).header() == renewed

    asyncio.run(story())


def test_a_token_that_the_upstream_drops_early_is_renewed_on_its_401(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        await logged_in(url, tmp_path, clock)
        login = session_for(url, tmp_path, clock)
        credentials: Credentials = login  # what a channel asks for
        server.access.clear()
        status, challenge = await call(url, await credentials.header())
        assert status == 401
        answers = await asyncio.gather(*(credentials.unauthorized(challenge) for _ in range(20)))
        assert all(answers)
        assert server.refreshes == 1
        assert (await call(url, await credentials.header()))[0] == 200
        # A straggler that was refused with the old token tries the new one instead of renewing it again.
        assert await credentials.unauthorized(challenge)
        assert server.refreshes == 1

    asyncio.run(story())


def test_a_revoked_refresh_token_needs_a_login_and_says_why(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        await logged_in(url, tmp_path, clock)
        server.revoke_everything()
        for _ in ("this run", "after a restart"):
            login = session_for(url, tmp_path, clock)
            status, challenge = await call(url, await login.header())
            assert status == 401
            with pytest.raises(NeedsLogin) as refused:
                await login.unauthorized(challenge)
            assert isinstance(refused.value, Unauthorized)
            assert refused.value.challenge == challenge
            assert refused.value.reason in (
                "the authorization server no longer renews the login (invalid_grant)",
                "the login has run out",
            )
        clock.ahead = 2 * HOUR
        assert await login.header() is None
        await login.finish_login(await browse(await login.begin_login()))
        assert (await call(url, await login.header()))[0] == 200
        assert server.registrations == 1

    asyncio.run(story())


def test_a_login_done_in_another_process_is_found(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        login = session_for(url, tmp_path, clock)
        _, challenge = await call(url, await login.header())
        await logged_in(url, tmp_path, clock)
        assert await login.unauthorized(challenge)
        assert (await call(url, await login.header()))[0] == 200
        assert server.refreshes == 0

    asyncio.run(story())


def test_a_client_that_the_authorization_server_forgot_is_not_used_again(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        login = await logged_in(url, tmp_path, clock)
        server.clients.clear()
        clock.ahead = 2 * HOUR
        assert await login.header() is None
        again = session_for(url, tmp_path, clock)
        await again.finish_login(await browse(await again.begin_login()))
        assert server.registrations == 2

    asyncio.run(story())


def test_a_token_endpoint_that_is_gone_for_good_needs_a_login(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        await logged_in(url, tmp_path, clock)
        login = session_for(url, tmp_path, clock)
        await login.header()
        server.outage = 404
        with pytest.raises(NeedsLogin, match="HTTP 404"):
            await login.unauthorized(None)

    asyncio.run(story())


def test_a_client_whose_secret_has_run_out_is_registered_anew(
    server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story(url: str) -> None:
        await logged_in(url, tmp_path, clock)
        clock.ahead = 2 * HOUR
        await logged_in(url, tmp_path, clock)
        assert server.registrations == 2

    with protected_upstream(server, secret_lifetime=int(HOUR)) as url:
        asyncio.run(story(url))


def test_a_token_without_a_sensible_end_is_used_until_it_is_refused(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        server.lifetime = -5
        login = await logged_in(url, tmp_path, clock)
        first = await login.header()
        clock.ahead = 1000 * HOUR
        assert await login.header() == first
        assert server.refreshes == 0

    asyncio.run(story())


def test_tokens_of_another_client_than_the_configured_one_are_not_renewed(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    async def story() -> None:
        await logged_in(url, tmp_path, clock)
        oauth = OAuth(client_id="ours", client_secret="s")
        login = OAuthSession("notes", url, oauth, TokenStore(tmp_path), redirect_uri=CALLBACK, clock=clock)
        await login.header()
        with pytest.raises(NeedsLogin, match=r"oauth\.client_id has changed"):
            await login.unauthorized(None)
        assert server.refreshes == 0

    asyncio.run(story())


@pytest.mark.parametrize("outage", [503, 429, 403])
def test_an_authorization_server_that_is_away_costs_no_login(
    url: str, server: AuthorizationServer, tmp_path: Path, clock: Clock, outage: int
) -> None:
    async def story() -> None:
        login = await logged_in(url, tmp_path, clock)
        first = await login.header()
        server.outage = outage
        clock.ahead = HOUR - 30
        assert await login.header() == first  # it still works
        clock.ahead = HOUR + 1
        for _ in range(3):
            with pytest.raises(AuthUnavailable, match=f"answered HTTP {outage}"):
                await login.header()
        assert server.turned_away == 1  # and is not asked again at once
        server.outage = None
        back = session_for(url, tmp_path, clock)
        assert await back.header() not in (None, first)

    asyncio.run(story())


def test_an_authorization_server_that_cannot_be_reached_costs_no_login(
    server: AuthorizationServer, tmp_path: Path, clock: Clock
) -> None:
    with protected_upstream(server) as url:
        asyncio.run(logged_in(url, tmp_path, clock))
    clock.ahead = 2 * HOUR

    async def story() -> None:
        with pytest.raises(AuthUnavailable, match=r"127\.0\.0\.1 could not be reached"):
            await session_for(url, tmp_path, clock).header()
        kept = await TokenStore(tmp_path).load(Identity("notes", url))
        assert kept is not None
        assert kept.refresh_token in server.renewers

    asyncio.run(story())
