"""Who are we to this upstream right now? Its token, kept fresh, and the login that a person has to do for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from mcpproxy.config.models import OAuth
from mcpproxy.upstream.oauth import flow
from mcpproxy.upstream.oauth.callback import listening
from mcpproxy.upstream.oauth.errors import AuthUnavailable, LoginFailed, NeedsLogin, RefreshRefused
from mcpproxy.upstream.oauth.gate import is_loopback
from mcpproxy.upstream.tokens import Grant, Identity, TokenStore

log = logging.getLogger(__name__)

LOGIN_LIFETIME = 600.0
"""Seconds a person has to finish a login that they asked for."""
_PATIENT_LIFETIME = 86_400.0
_LINK_PATIENCE = 45.0
_MARGIN = 60.0
_RETRY_AFTER = 5.0
_JUST_NOW = 10.0
_STOP_PATIENCE = 3.0


class OAuthSession:
    """The credentials of one upstream: what a channel asks for its header, and a face for its login link.

    `redirect_uri` is the address whose visitors the proxy hands to `finish_login`. Without one, each login opens a
    port of its own on this machine.
    """

    def __init__(
        self,
        server: str,
        url: str,
        oauth: OAuth | None,
        store: TokenStore,
        *,
        redirect_uri: str | None = None,
        on_login: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server = server
        self._identity = Identity(server, url)
        self._target = flow.Target(url, oauth or OAuth())
        self._store = store
        self._redirect_uri = redirect_uri
        self._on_login = on_login
        self._clock = clock
        self._grant: Grant | None = None
        self._loaded = False
        self._challenge: flow.Challenge | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._renewed_at = self._retry_at = float("-inf")
        self._retry_reason = ""
        self._login: _Login | None = None
        self._last_login_failed = False

    # What a channel needs.

    async def header(self) -> str | None:
        """The Authorization header, renewed ahead of its end; None where there is no token to show."""
        if not self._loaded:
            self._grant, self._loaded = await self._store.load(self._identity), True
        grant = self._grant
        if grant is None or self._is_fresh(grant):
            return grant.header if grant else None
        if grant.refresh_token is not None:
            try:
                await self._renew()
            except NeedsLogin:
                pass  # a token that still works is still shown
            except AuthUnavailable:
                if self._has_ended(grant):
                    raise
            grant = self._grant
        return grant.header if grant and not self._has_ended(grant) else None

    async def unauthorized(self, challenge: str | None) -> bool:
        """The upstream refused us: True where another try makes sense, else NeedsLogin with the reason."""
        if "insufficient_scope" in (challenge or ""):
            self._challenge = flow.Challenge(403, challenge)
            raise NeedsLogin(self._scope_reason(), challenge, status=403)
        self._challenge = flow.Challenge(401, challenge)
        # Calls that were under way with the old token come here too; for them, the new one is still untried.
        if self._grant is None or time.monotonic() - self._renewed_at >= _JUST_NOW:
            try:
                await self._renew()
            except NeedsLogin as error:
                raise NeedsLogin(error.reason, challenge) from None
        return True

    def _scope_reason(self) -> str:
        if self._target.oauth.scopes:
            return "the server wants more scopes than oauth.scopes lists: add them there and log in again"
        return "the server wants more scopes than the login gave: log in again to grant them"

    # What a face needs.

    @property
    def login_url(self) -> str | None:
        """The link a person should open, while a login waits for one."""
        return self._login.url if self._login is not None else None

    async def login_link(self) -> str | None:
        """A link for whoever comes by, good for a day; None where no login can be had, which the log explains."""
        try:
            return self.login_url or await self._started(_PATIENT_LIFETIME).link()
        except LoginFailed:
            return None

    async def begin_login(self) -> str:
        """Start a login for a person who asks for one now. It takes the place of one that waits."""
        if self.login_url is not None:
            await self.cancel_login()
        return await self._started(LOGIN_LIFETIME).link()

    def _started(self, lifetime: float) -> _Login:
        if self._login is None or self._login.outcome.done():
            self._login = _Login(lifetime)
            self._login.task = asyncio.create_task(self._run_login(self._login))
        return self._login

    def expects(self, state: str | None) -> bool:
        """Whether the pending login waits for an answer with this `state`."""
        return state is not None and self._login is not None and self._login.state == state

    async def finish_login(self, brought: Mapping[str, str]) -> None:
        """Take the query that the browser brought to the redirect URI; raises LoginFailed where it ends badly."""
        if not self.expects(brought.get("state")) or self._login is None:
            # Not a reason to end the login that waits: anybody can send a browser here.
            raise LoginFailed("no login is waiting for this answer; it may be over. Start it again")
        if self._login.answer.done():
            raise LoginFailed("this login has been answered already")
        self._login.answer.set_result(dict(brought))
        await self.login_finished()

    async def login_finished(self) -> None:
        """Wait for the end of the latest login; raises LoginFailed where it ended badly."""
        if self._login is None:
            raise LoginFailed("no login was started")
        failure = await asyncio.shield(self._login.outcome)
        if failure is not None:
            raise LoginFailed(failure)

    async def cancel_login(self) -> None:
        """End the pending login; its link leads nowhere from here on."""
        if self._login is not None and self._login.task is not None:
            self._login.task.cancel()
            await asyncio.wait({self._login.task})

    async def logout(self) -> None:
        """Forget the token, here and in the store."""
        await self.cancel_login()
        if self._renewal is not None:
            await asyncio.wait({self._renewal})  # or it would keep what is to be forgotten
        self._grant, self._loaded = None, True
        async with self._store.exclusive(self._identity):
            await self._store.forget(self._identity)

    async def close(self) -> None:
        """End what is under way. A renewal is let finish: its refresh token works only once."""
        await self.cancel_login()
        if self._renewal is not None:
            await asyncio.wait({self._renewal}, timeout=_STOP_PATIENCE)
            if self._renewal is not None:
                self._renewal.cancel()

    # Renewal.

    def _is_fresh(self, grant: Grant) -> bool:
        if grant.expires_at is None:
            return True
        margin = min(_MARGIN, (grant.expires_at - grant.issued_at) / 5)
        return self._clock() < grant.expires_at - margin

    def _has_ended(self, grant: Grant) -> bool:
        return grant.expires_at is not None and self._clock() >= grant.expires_at

    async def _renew(self) -> None:
        """Renew the token, once for everybody who asks, and to the end even where they all walk away."""
        if self._renewal is None:
            if time.monotonic() < self._retry_at:
                raise AuthUnavailable(self._retry_reason)
            self._renewal = asyncio.create_task(self._renew_once(self._grant))
            self._renewal.add_done_callback(self._renewal_done)
        await asyncio.shield(self._renewal)

    def _renewal_done(self, task: asyncio.Task[None]) -> None:
        self._renewal = None
        if not task.cancelled():
            task.exception()  # whoever waited has it; if nobody did, it is no news

    async def _renew_once(self, stale: Grant | None) -> None:
        async with self._store.exclusive(self._identity):
            held = stale
            stored = await self._store.load(self._identity)
            if stored is not None and (stale is None or stored.issued_at > stale.issued_at):
                held = stored  # another process was here before us
                self._adopt(stored)
                if self._is_fresh(stored):
                    return
            if held is None:
                raise NeedsLogin("the server asks for a login")
            await self._refresh(held)

    async def _refresh(self, held: Grant) -> None:
        try:
            renewed = await flow.refresh(self._target, held, self._clock)
        except RefreshRefused as error:
            log.warning("%s: %s", self.server, error)
            client = None if error.client_unknown else held.client
            self._grant = replace(held, refresh_token=None, client=client)
            await self._store.save(self._identity, self._grant)
            raise
        except AuthUnavailable as error:
            log.warning("%s: %s", self.server, error)
            self._retry_at, self._retry_reason = time.monotonic() + _RETRY_AFTER, str(error)
            raise
        self._adopt(renewed)
        await self._store.save(self._identity, renewed)
        log.info("%s: the token was renewed", self.server)

    def _adopt(self, grant: Grant) -> None:
        self._grant, self._loaded = grant, True
        self._renewed_at, self._retry_at = time.monotonic(), float("-inf")

    # Login.

    async def _run_login(self, login: _Login) -> None:
        failure: str | None = "the login was cancelled"
        try:
            async with asyncio.timeout(login.lifetime) as deadline, self._redirect() as redirect_uri:
                try:
                    failure = await self._log_in(login, redirect_uri)
                finally:
                    if deadline.expired():
                        failure = f"nobody finished the login within {login.lifetime / 60:g} minutes"
                    login.end(failure)  # before the port closes: the browser there waits for the outcome
        except LoginFailed as error:
            failure = str(error)
        except TimeoutError:
            pass  # said above
        finally:
            login.end(failure)
            self._last_login_failed = failure is not None
        if failure is not None:
            log.warning("%s: the login failed: %s", self.server, failure)
            return
        log.info("%s: logged in", self.server)
        if self._on_login is not None:
            self._on_login()

    async def _log_in(self, login: _Login, redirect_uri: str) -> str | None:
        try:
            grant = await self._authorize(login, redirect_uri)
        except LoginFailed as error:
            return str(error)
        async with self._store.exclusive(self._identity):
            await self._store.save(self._identity, grant)
        self._adopt(grant)
        self._challenge = None
        return None

    async def _authorize(self, login: _Login, redirect_uri: str) -> Grant:
        held = self._grant or await self._store.load(self._identity)
        if self._last_login_failed and held is not None:
            # It may have failed in the browser, where we see nothing: the server may have forgotten our client.
            held = replace(held, client=None)
        return await flow.authorize(
            self._target,
            redirect_uri,
            held,
            self._challenge,
            show=login.show,
            wait=login.brought,
            clock=self._clock,
        )

    @contextlib.asynccontextmanager
    async def _redirect(self) -> AsyncIterator[str]:
        """The redirect URI of a login, with somebody listening there."""
        wanted, ours = self._target.oauth.redirect_uri, self._redirect_uri
        if wanted is None and ours is not None:
            yield ours
        elif wanted is not None and not _is_ours_to_open(wanted, ours):
            yield wanted
        else:
            async with listening(self.finish_login, wanted) as address:
                yield address


def _is_ours_to_open(wanted: str, proxy: str | None) -> bool:
    """Whether the operator's redirect URI is a port on this machine that the proxy does not hold already."""
    try:
        parts = urlsplit(wanted)
        taken = proxy is not None and parts.port == urlsplit(proxy).port
    except ValueError:
        raise LoginFailed("oauth.redirect_uri is not a URL") from None
    return parts.scheme == "http" and is_loopback(parts.hostname) and not taken


class _Login:
    """One login, from the link to its outcome."""

    def __init__(self, lifetime: float) -> None:
        loop = asyncio.get_running_loop()
        self.lifetime = lifetime
        self.answer: asyncio.Future[dict[str, str]] = loop.create_future()
        self.outcome: asyncio.Future[str | None] = loop.create_future()
        """None, or why it failed."""
        self.task: asyncio.Task[None] | None = None
        self.state: str | None = None
        self._link: asyncio.Future[str] = loop.create_future()

    @property
    def url(self) -> str | None:
        return self._link.result() if self._link.done() and not self.answer.done() and not self.outcome.done() else None

    async def link(self) -> str:
        waiting: set[asyncio.Future[str] | asyncio.Future[str | None]] = {self._link, self.outcome}
        await asyncio.wait(waiting, timeout=_LINK_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if self._link.done():
            return self._link.result()
        if not self.outcome.done():
            raise LoginFailed("the authorization server takes too long; try again")
        raise LoginFailed(self.outcome.result() or "the login ended without a link")

    async def show(self, link: str) -> None:
        self.state = parse_qs(urlsplit(link).query)["state"][0]
        self._link.set_result(link)

    async def brought(self) -> Mapping[str, str]:
        return await self.answer

    def end(self, failure: str | None) -> None:
        self.state = None
        if not self.outcome.done():
            self.outcome.set_result(failure)
