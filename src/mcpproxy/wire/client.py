"""Who are we to an HTTP upstream? A warm pool of connections and the credentials that go with each request."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from mcpproxy.wire.errors import Unauthorized

_MAX_CONNECTIONS = 512


class Credentials(Protocol):
    """Who we are to an upstream that asks for a login."""

    async def header(self) -> str | None:
        """The Authorization header, or None where there is none yet."""

    async def unauthorized(self, challenge: str | None) -> bool:
        """The upstream refused it: True where another try makes sense."""


class Client:
    """One upstream and one identity. Nothing is ever sent again on a redirect or a lost connection."""

    def __init__(self, headers: Mapping[str, str], credentials: Credentials | None) -> None:
        self._credentials = credentials
        self._http = aiohttp.ClientSession(
            # Most servers drop an idle connection after five seconds. We drop it first, since a POST that meets a
            # closing connection cannot be sent again.
            connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=4),
            headers=dict(headers),
            timeout=aiohttp.ClientTimeout(total=None, connect=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=True,
        )

    @contextlib.asynccontextmanager
    async def request(
        self, method: str, url: str | URL, body: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; where it is refused for its credentials and better ones can be had, once more with those."""
        for attempt in (1, 2):
            sent = CIMultiDict(headers)
            if self._credentials is not None and (bearer := await self._credentials.header()) is not None:
                sent["Authorization"] = bearer
            async with self._http.request(method, url, data=body, headers=sent, allow_redirects=False) as response:
                challenge = response.headers.get("WWW-Authenticate")
                missing_scope = response.status == 403 and "insufficient_scope" in (challenge or "")
                if response.status != 401 and not missing_scope:
                    yield response
                    return
            if attempt == 2 or self._credentials is None or not await self._credentials.unauthorized(challenge):
                raise Unauthorized(response.status, challenge)

    async def close(self) -> None:
        """Drop every connection."""
        await self._http.close()


def origin(url: str | URL) -> str:
    """Scheme, host and port: enough to name a server, without what a path or query may hide."""
    with contextlib.suppress(ValueError):
        return str(URL(url).origin())
    return "the server"
