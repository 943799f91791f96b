"""Which requests of a login may leave, and what may come back?

The upstream names its authorization server, and that one names its endpoints: all of it is a stranger's word. Every
address passes one rule, every answer one size limit and one deadline, and no redirect leads to another host.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
import msgspec

from mcpproxy import __version__
from mcpproxy.upstream.oauth.errors import AuthUnavailable, LoginFailed

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

_TIMEOUT = 15.0
_MAX_BODY = 65_536
_ENDPOINTS = ("issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint")
_OURS_TO_SET = {"host", "content-length", "accept-encoding", "user-agent"}
_NOT_IN_A_URL = re.compile(r'[^\x21-\x7e]|[\\<>"`{}|^]')
# All legal in a URL, none needed in an endpoint, and each has a meaning to some shell that opens links.
_NOT_IN_A_LINK = re.compile(r"[$()';!*]")


class Gate:
    """The one way out for every request of one exchange with an authorization server."""

    def __init__(self, upstream: str) -> None:
        self._local = is_loopback(urlsplit(upstream).hostname)
        self.last: httpx2.Response | None = None
        self.notes: list[str] = []
        """What a person should know when the exchange fails."""

    def check(self, url: object, what: str) -> None:
        """Refuse an address that is not https, or that leads from a remote upstream to this machine."""
        reason = _objection(url, self._local)
        if reason is not None:
            raise LoginFailed(f"{what} {ascii(url)[:120]} is refused: {reason}")

    def check_link(self, endpoint: str) -> None:
        """Refuse an authorization endpoint that nobody should open."""
        self.check(endpoint, "the authorization endpoint")
        if _NOT_IN_A_LINK.search(endpoint):
            raise LoginFailed(f"the authorization endpoint {ascii(endpoint)[:120]} is refused: it is no plain URL")

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request of the flow, bounded in every way."""
        import httpx2

        status, headers, body = await self._exchange(request)
        response = httpx2.Response(status, headers=headers, content=body, request=request)
        response.next_request = self._redirected(request, response)
        if request.method == "GET":
            self._read_metadata(request, status, body)
        self.last = response
        return response

    async def challenge(self, url: str) -> str | None:
        """Knock at the upstream without a token, to hear where it wants us to log in."""
        self.check(urlsplit(url)._replace(query="").geturl(), "the upstream's address")
        try:
            async with _session(url) as http, http.get(url, headers=_headers({}), allow_redirects=False) as response:
                return response.headers.get("WWW-Authenticate") if response.status == 401 else None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise AuthUnavailable(_unreachable(url, error)) from None

    def _read_metadata(self, request: httpx2.Request, status: int, body: bytes) -> None:
        if status == 429 or status >= 500:  # the SDK goes on without this document
            self._note(f"{request.url.host} answered HTTP {status} when asked for its metadata")
        document = json_object(body) if status == 200 else {}
        for name in _ENDPOINTS:
            if document.get(name) is not None:
                self.check(document[name], f"the server's {name}")
        servers = document.get("authorization_servers")
        for server in servers if isinstance(servers, list) else ():
            self.check(server, "the authorization server")

    def _note(self, text: str) -> None:
        log.warning("%s", text)
        self.notes.append(text)

    async def _exchange(self, request: httpx2.Request) -> tuple[int, list[tuple[str, str]], bytes]:
        url = str(request.url)
        self.check(url, "the address")
        headers = _headers(_without_ours(request.headers))
        try:
            async with (
                _session(url) as http,
                http.request(
                    request.method, url, data=request.content, headers=headers, allow_redirects=False
                ) as response,
            ):
                kept = [(name, value) for name, value in response.headers.items() if name != "Transfer-Encoding"]
                return response.status, kept, await _body(response, url)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise AuthUnavailable(_unreachable(url, error)) from None

    def _redirected(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | None:
        """Where a redirect leads. The SDK follows it on the same origin only; of another host we tell."""
        import httpx2

        if not response.has_redirect_location or (request.method != "GET" and response.status_code not in (307, 308)):
            return None
        try:
            url = request.url.join(response.headers["Location"])
        except httpx2.InvalidURL:
            return None
        if url.host != request.url.host:
            self._note(f"{request.url.host} redirects to {ascii(url.host)[:80]}, which was not followed")
        return httpx2.Request(request.method, url, headers=_without_ours(request.headers), content=request.content)


def json_object(body: bytes) -> dict[str, object]:
    """A JSON object, or an empty one where the body is something else."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, dict) else {}


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address is this machine."""
    name = (host or "").rstrip(".")
    try:
        address = ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _objection(url: object, local: bool) -> str | None:
    if not isinstance(url, str) or _NOT_IN_A_URL.search(url):
        return "it is not a URL"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is not a URL"
    if parts.scheme not in ("https", "http") or not host:
        return "only https addresses are allowed"
    if "@" in parts.netloc:
        return "it carries a user name"
    if parts.fragment:
        return "it carries a fragment"
    if is_loopback(host):
        return None if local else "a remote upstream must not send us to this machine"
    return None if parts.scheme == "https" else "only https is allowed (http only on this machine)"


async def _body(response: aiohttp.ClientResponse, url: str) -> bytes:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise LoginFailed(f"{_host(url)} compressed its answer though asked not to")
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _MAX_BODY:
            raise LoginFailed(f"{_host(url)} answered with more than {_MAX_BODY} bytes")
    return bytes(body)


def _session(url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=_TIMEOUT),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=not is_loopback(urlsplit(url).hostname),  # nothing local goes out through a proxy
    )


def _without_ours(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OURS_TO_SET}


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    # Some token endpoints answer in form encoding unless asked for JSON.
    return {
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"mcpproxy/{__version__}",
        **given,
    }


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the server"


def _unreachable(url: str, error: Exception) -> str:
    return f"{_host(url)} could not be reached ({type(error).__name__})"
