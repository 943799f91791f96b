"""Is this browser the operator's? A one-time link or the key opens a session; a cookie and a token hold it.

A browser cannot send `X-API-Key` by itself, and a key in a URL would stay in histories and logs. So a link carries a
code that works once and for minutes, and becomes a cookie that scripts cannot read and other sites cannot send. What
changes something must bring the session's CSRF token besides, which only our own pages know.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

COOKIE: Final = "mcpproxy_session"
CSRF_HEADER: Final = b"x-csrf-token"
LINK_SECONDS: Final = 300.0
IDLE_SECONDS: Final = 12 * 3600.0
LONGEST_SECONDS: Final = 7 * 86_400.0
_MOST_LINKS: Final = 100
_MOST_SESSIONS: Final = 1000
_SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))


class Session(Struct):
    """One browser that was let in."""

    secret: str
    api_key: str
    opened_at: float
    used_at: float


class _Link(Struct, frozen=True):
    """A login link that waits to be opened. It ends with the key that it came from, as sessions do."""

    until: float
    api_key: str


class Browsers:
    """The browsers that are let in, in memory: a restart logs them out."""

    def __init__(self, api_key: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._api_key = api_key
        self._clock = clock
        self._signing = secrets.token_bytes(32)
        self._links: OrderedDict[str, _Link] = OrderedDict()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def invite(self) -> str:
        """The code of a new login link: it works once, and for a few minutes."""
        code = secrets.token_urlsafe(32)
        self._links[_digest(code)] = _Link(self._clock() + LINK_SECONDS, self._api_key())
        if len(self._links) > _MOST_LINKS:
            self._links.popitem(last=False)
        return code

    def accept(self, code: str) -> Session | None:
        """Open a session for whoever brings a code; None where it is used up, too old, of another key or made up."""
        link = self._links.pop(_digest(code), None)
        good = link is not None and link.until > self._clock() and link.api_key == self._api_key()
        return self.open() if good else None

    def open(self) -> Session:
        """Open a session for a browser whose user gave the key."""
        at = self._clock()
        session = Session(secrets.token_urlsafe(32), self._api_key(), at, at)
        self._sessions[_digest(session.secret)] = session
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def find(self, cookies: str | None) -> Session | None:
        """The session behind a `Cookie` header; it ends when the API key changes, or after a while."""
        secret = _cookie(cookies)
        place = _digest(secret) if secret is not None else ""
        session = self._sessions.get(place)
        if session is None:
            return None
        at = self._clock()
        too_old = at - session.used_at > IDLE_SECONDS or at - session.opened_at > LONGEST_SECONDS
        if too_old or session.api_key != self._api_key():
            del self._sessions[place]
            return None
        session.used_at = at
        self._sessions.move_to_end(place)
        return session

    def close(self, session: Session) -> None:
        """Log a browser out."""
        self._sessions.pop(_digest(session.secret), None)

    def csrf_token(self, session: Session) -> str:
        """What our own pages send along with every change."""
        return hmac.digest(self._signing, session.secret.encode(), "sha256").hex()

    def may(self, session: Session, method: str, csrf_token: str | None) -> bool:
        """Whether this request is the session's own wish, and not that of another site in the same browser."""
        return method in _SAFE or secrets.compare_digest((csrf_token or "").encode(), self.csrf_token(session).encode())


def login_link(address: str, code: str) -> str:
    """What a person opens to bring a code."""
    return f"{address}/ui/login?code={code}"


def set_cookie(session: Session, *, secure: bool) -> str:
    """The `Set-Cookie` header that lets a browser hold its session."""
    return f"{COOKIE}={session.secret}; Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"


def _cookie(cookies: str | None) -> str | None:
    # Other programs on this machine leave cookies of any form with the browser; those must not hide ours.
    for part in (cookies or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def _digest(secret: str) -> str:
    # A look-up by hash tells nothing about the secret by the time it takes.
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
