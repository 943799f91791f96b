"""How does one exchange with an authorization server go?

The SDK's provider owns the protocol: discovery, PKCE, registration, issuer checks, refresh. It is an httpx2 auth flow,
a generator that yields the requests it wants sent. We run that generator ourselves, for a request to the upstream that
is never sent, so that every other request passes the gate. A provider lives for one exchange; what lasts is the grant.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from mcpproxy import __version__
from mcpproxy.config.models import OAuth
from mcpproxy.upstream.oauth.errors import AuthUnavailable, LoginFailed, NeedsLogin, RefreshRefused
from mcpproxy.upstream.oauth.gate import Gate, is_loopback, json_object
from mcpproxy.upstream.tokens import Grant

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

_CLIENT = {
    "client_id",
    "client_secret",
    "client_secret_expires_at",
    "redirect_uris",
    "token_endpoint_auth_method",
    "issuer",
}
# A token endpoint that says one of these may say something else in a minute.
_PASSING = {"temporarily_unavailable", "server_error", "slow_down"}
_TEN_YEARS = 315_360_000

Show = Callable[[str], Awaitable[None]]
Wait = Callable[[], Awaitable[Mapping[str, str]]]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Target:
    """The upstream to log in to, and what the operator said about it."""

    url: str
    oauth: OAuth

    @property
    def address(self) -> str:
        """The URL in its plain form, without a user name or password."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2].lower(), parts.path, parts.query, ""))


@dataclass(frozen=True)
class Challenge:
    """How the upstream refused us: what a login starts from."""

    status: int
    header: str | None


async def authorize(
    target: Target,
    redirect_uri: str,
    held: Grant | None,
    challenge: Challenge | None,
    *,
    show: Show,
    wait: Wait,
    clock: Clock,
) -> Grant:
    """Log in with a person's help: `show` gets the link, `wait` gives what the browser brought back."""
    gate = Gate(target.url)
    memory = _Memory(_client_to_be(target, redirect_uri, held, clock()))

    async def show_checked(link: str) -> None:
        endpoint, _, query = link.rpartition("?")
        gate.check_link(endpoint)
        _settle_client(provider.context, target, held)
        await show(f"{endpoint}{'&' if '?' in endpoint else '?'}{query}")

    provider = _provider(target, memory, redirect_uri, show_checked, _answer(wait))
    failure = None
    try:
        challenge = challenge or Challenge(401, await gate.challenge(target.address))
        if challenge.status == 403 and held is not None:  # a wish for more: what we may do already stays in it
            memory.token = _token(held, refresh=False)
        await _run(provider, gate, _refusal(target, challenge))
    except LoginFailed as error:
        failure = str(error)
    except Exception as error:
        failure = _explain(error, gate, provider.context)
    # Raised out here so that no exception of the SDK, whose texts quote whole answers, hangs on ours.
    if failure is not None:
        raise LoginFailed(failure)
    grant = _grant(provider.context, memory, target, clock())
    return replace(grant, client={**(grant.client or {}), "redirect_uris": [redirect_uri]})


async def refresh(target: Target, held: Grant, clock: Clock) -> Grant:
    """Trade the refresh token for a new grant, at the token endpoint that the login found."""
    from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, ProtectedResourceMetadata

    if held.refresh_token is None or held.client is None:
        raise NeedsLogin("the login has run out")
    client = OAuthClientInformationFull.model_validate(held.client)
    if target.oauth.client_id is not None:
        if client.client_id != target.oauth.client_id:
            raise NeedsLogin("oauth.client_id has changed since the login")
        client.client_secret = target.oauth.client_secret
    gate, memory = Gate(target.url), _Memory(client, _token(held, refresh=True))
    provider = _provider(target, memory, "http://127.0.0.1/")
    context = provider.context
    if held.metadata:
        context.oauth_metadata = OAuthMetadata.model_validate(held.metadata)
    if held.resource:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(held.resource)
    context.token_expiry_time = 1.0  # long past: the SDK does not know when a stored token ends, and must renew now
    failure = None
    try:
        await _run(provider, gate, None)
    except Exception as error:
        failure = str(error) if isinstance(error, AuthUnavailable | LoginFailed) else type(error).__name__
    if failure is not None:
        raise AuthUnavailable(f"the token cannot be renewed: {failure}")
    if not memory.received:
        raise _refresh_refused(gate.last)
    return _grant(context, memory, target, clock())


def _refresh_refused(response: httpx2.Response | None) -> Exception:
    """Only the authorization server's own word ends a login. A proxy's error page does not."""
    status = response.status_code if response is not None else 0
    code = _error_code(response)
    if code is not None and code not in _PASSING:
        return RefreshRefused(code)
    if status in (404, 410):
        return RefreshRefused(f"HTTP {status}")
    return AuthUnavailable(f"the token cannot be renewed: the authorization server answered HTTP {status}")


async def _run(provider: OAuthClientProvider, gate: Gate, refusal: httpx2.Response | None) -> None:
    """Drive the SDK's flow. `refusal` is how the upstream answered; without one, the flow ends where it would ask."""
    import httpx2

    request = httpx2.Request("POST", provider.context.server_url)
    flow = provider.async_auth_flow(request)
    try:
        outgoing = await anext(flow)
        while True:
            if outgoing is not request:
                response = await gate.send(outgoing)
            elif refusal is not None:
                response, refusal = refusal, None
            else:
                return
            outgoing = await flow.asend(response)
    except StopAsyncIteration:
        return
    finally:
        await flow.aclose()


class _Memory:
    """The SDK's token storage for the length of one exchange."""

    def __init__(self, client: OAuthClientInformationFull | None, token: OAuthToken | None = None) -> None:
        self.client = client
        self.token = token
        self.received = False

    async def get_tokens(self) -> OAuthToken | None:
        return self.token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.token, self.received = tokens, True

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _Mute(logging.Filter):
    """The SDK logs a failed flow with the answer's text, tokens and all. What is worth saying we say ourselves."""

    def filter(self, record: logging.LogRecord) -> bool:
        return False


_MUTE = _Mute()


def _provider(
    target: Target,
    memory: _Memory,
    redirect_uri: str,
    show: Show | None = None,
    answer: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    logging.getLogger("mcp.client.auth.oauth2").addFilter(_MUTE)
    described = {
        "client_name": "mcpproxy",
        "software_id": "mcpproxy",
        "software_version": __version__,
        "redirect_uris": [redirect_uri],
        "application_type": "native" if is_loopback(urlsplit(redirect_uri).hostname) else "web",
    }
    try:
        metadata = OAuthClientMetadata.model_validate(described)
        return OAuthClientProvider(
            target.address, metadata, memory, show, answer, client_metadata_url=target.oauth.client_metadata_url
        )
    except ValueError:
        raise LoginFailed(
            "oauth.redirect_uri must be a URL, and oauth.client_metadata_url an https URL with a path"
        ) from None


def _client_to_be(
    target: Target, redirect_uri: str, held: Grant | None, now: float
) -> OAuthClientInformationFull | None:
    """The client to log in as: the operator's, or the one of the last login where it still fits."""
    from mcp.shared.auth import OAuthClientInformationFull

    oauth = target.oauth
    if oauth.client_id is not None:
        return OAuthClientInformationFull(client_id=oauth.client_id, client_secret=oauth.client_secret)
    client = held.client if held is not None else None
    if client is None or redirect_uri not in client.get("redirect_uris", ()):
        return None
    if 0 < (client.get("client_secret_expires_at") or 0) <= now:
        return None
    return OAuthClientInformationFull.model_validate(client)


def _settle_client(context: OAuthContext, target: Target, held: Grant | None) -> None:
    """Decide how we prove who we are, now that the authorization server is known."""
    client, metadata = context.client_info, context.oauth_metadata
    if client is None:
        return
    known = (held.metadata or {}).get("issuer") if held is not None else None
    if target.oauth.client_secret and known and (metadata is None or str(metadata.issuer) != known):
        # The SDK binds registered clients to their issuer, but knows nothing of where the operator's belongs.
        raise LoginFailed(
            f"the upstream names another authorization server than at the last login ({known}), and your"
            " oauth.client_secret was not sent there. If the move is right, log out (see docs/oauth.md) and in again"
        )
    if client.token_endpoint_auth_method is None:
        offered = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
        secret = "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"
        client.token_endpoint_auth_method = secret if client.client_secret else "none"


def _refusal(target: Target, challenge: Challenge) -> httpx2.Response:
    """The upstream's refusal as the SDK reads it, with the operator's scopes in place of the wished ones."""
    import httpx2
    from mcp.client.auth.utils import extract_field_from_www_auth

    request = httpx2.Request("POST", target.address)
    response = httpx2.Response(challenge.status, headers={"WWW-Authenticate": challenge.header or ""}, request=request)
    if target.oauth.scopes:
        fields = {name: extract_field_from_www_auth(response, name) for name in ("error", "resource_metadata")}
        fields["scope"] = " ".join(target.oauth.scopes)
        told = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        response.headers["WWW-Authenticate"] = f"Bearer {told}"
    return response


def _answer(wait: Wait) -> Callable[[], Awaitable[AuthorizationCodeResult]]:
    async def answer() -> AuthorizationCodeResult:
        from mcp.shared.auth import AuthorizationCodeResult

        brought = await wait()
        if "error" in brought:
            code = _code(brought["error"])
            said = "the login was denied" if code == "access_denied" else "the authorization server refused the login"
            raise LoginFailed(f"{said} ({code})")
        if not brought.get("code"):
            raise LoginFailed("the authorization server sent the browser back without a code")
        return AuthorizationCodeResult(code=brought["code"], state=brought.get("state"), iss=brought.get("iss"))

    return answer


def _token(held: Grant, *, refresh: bool) -> OAuthToken:
    from mcp.shared.auth import OAuthToken

    renewer = held.refresh_token if refresh else None
    return OAuthToken(access_token=held.access_token, refresh_token=renewer, scope=held.scope)


def _grant(context: OAuthContext, memory: _Memory, target: Target, now: float) -> Grant:
    """What is worth keeping of a finished exchange: little, since a keyring's entries are small."""
    token = memory.token
    if token is None or not memory.received:
        raise LoginFailed("the authorization server gave no token")
    lifetime = token.expires_in if token.expires_in is not None and token.expires_in > 0 else None
    kept = _CLIENT - {"client_secret"} if target.oauth.client_id is not None else _CLIENT  # the configuration has it
    return Grant(
        access_token=token.access_token,
        refresh_token=token.refresh_token,
        scope=token.scope,
        issued_at=now,
        expires_at=now + min(lifetime, _TEN_YEARS) if lifetime else None,
        client=_dump(context.client_info, kept),
        metadata=_dump(context.oauth_metadata, {"issuer", "authorization_endpoint", "token_endpoint"}),
        resource=_dump(context.protected_resource_metadata, {"resource", "authorization_servers"}),
    )


def _dump(model: Any, fields: set[str]) -> dict[str, Any] | None:
    return model.model_dump(mode="json", include=fields, exclude_none=True) if model is not None else None


def _explain(error: Exception, gate: Gate, context: OAuthContext) -> str:
    """What went wrong, in our own words: the SDK's texts may quote tokens."""
    from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError

    notes = "".join(f"; {note}" for note in gate.notes)
    status = gate.last.status_code if gate.last is not None else "?"
    code = f", {said}" if (said := _error_code(gate.last)) else ""
    if isinstance(error, AuthUnavailable):
        return f"{error}{notes}"
    if isinstance(error, OAuthTokenError):
        return f"the token endpoint gave no usable token (HTTP {status}{code}){notes}"
    if isinstance(error, OAuthRegistrationError):
        silent = "" if context.oauth_metadata is not None else "the server publishes no OAuth metadata, and "
        return (
            f"{silent}mcpproxy could not register itself as a client (HTTP {status}{code}){notes}."
            " Register one by hand and set oauth.client_id"
        )
    if isinstance(error, OAuthFlowError):  # these quote addresses and issuers, no more
        text = "".join(char for char in str(error) if char.isprintable())
        return f"{text.replace(context.server_url, 'this server')[:300]}{notes}"
    return f"the login broke off ({type(error).__name__}){notes}"


def _error_code(response: httpx2.Response | None) -> str | None:
    document = json_object(response.content) if response is not None else {}
    return _code(document["error"]) if "error" in document else None


def _code(value: object) -> str:
    """An OAuth error code. Anything longer is a stranger's prose and stays outside."""
    return value if isinstance(value, str) and re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", value) else "unknown error"
