"""Who are we to an HTTP upstream? A warm pool of connections and the credentials that go with each request."""

from __future__ import annotations

import contextlib
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from mcpproxy.wire.credentials import Credentials
from mcpproxy.wire.errors import Unauthorized

_MAX_CONNECTIONS = 512
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class Client:
    """One upstream and one identity. Nothing is ever sent again on a redirect or a lost connection."""

    def __init__(self, url: str | URL, headers: Mapping[str, str], credentials: Credentials | None) -> None:
        url = URL(url)
        self._credentials = credentials
        self._headers = CIMultiDict(headers)
        if url.user is not None:
            # As a header it can give way to a better one; aiohttp refuses to send the two together.
            basic = b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
            self._headers.setdefault("Authorization", f"Basic {basic}")
        self._proxy = _proxy_for(url)
        self._http = aiohttp.ClientSession(
            # Most servers drop an idle connection after five seconds. We drop it first, since a POST that meets a
            # closing connection cannot be sent again.
            connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=4),
            timeout=aiohttp.ClientTimeout(total=None, connect=30),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    @contextlib.asynccontextmanager
    async def request(
        self, method: str, url: str | URL, body: bytes | None, headers: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; where it is refused for its credentials and better ones can be had, once more with those."""
        address = URL(url).with_user(None)
        for attempt in (1, 2):
            sent = self._headers.copy()
            sent.update(headers)
            if self._credentials is not None and (bearer := await self._credentials.header()) is not None:
                sent["Authorization"] = bearer
            async with self._http.request(
                method, address, data=body, headers=sent, allow_redirects=False, proxy=self._proxy
            ) as response:
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


def _proxy_for(url: URL) -> str | None:
    """The proxy that the environment names for this address.

    Looked up once: letting aiohttp trust the environment costs more than a call does, each time, and hands the
    passwords of ~/.netrc to whoever is there. This machine is never behind a proxy, as in Go.
    """
    host = url.host or ""
    if host in _THIS_MACHINE or proxy_bypass(host):
        return None
    return getproxies().get(url.scheme)


def origin(url: str | URL) -> str:
    """Scheme, host and port: enough to name a server, without what a path or query may hide."""
    with contextlib.suppress(ValueError):
        return str(URL(url).origin())
    return "the server"


def readable(text: str) -> str:
    """Text from a header line, short and without the bytes that are none."""
    return text[:200].encode(errors="replace").decode()


def how_it_broke(error: aiohttp.ClientError) -> str:
    """What became of a connection. aiohttp says 400 of an answer that ends early, which is no word of the server's."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer ended half-way"
    return str(error) or type(error).__name__
