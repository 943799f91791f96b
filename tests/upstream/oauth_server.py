"""A real authorization server and a protected MCP endpoint, the SDK's own, on a loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class AuthorizationServer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Consents to everything at once, rotates refresh tokens, counts what it is asked."""

    def __init__(self) -> None:
        self.lifetime = 3600
        self.denies = False
        self.issuer_in_answer: str | None = None
        self.grants: list[str] | None = None
        self.outage: int | None = None
        self.turned_away = 0
        self.pause_after_refresh = 0.0
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.renewers: dict[str, RefreshToken] = {}
        self.registrations = 0
        self.refreshes = 0
        self.secrets: list[str] = []

    def in_front_of(self, app: ASGIApp) -> ASGIApp:
        """The app, with a token endpoint that can be away."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if self.outage is not None and scope.get("path") == "/token":
                self.turned_away += 1
                await HTMLResponse("<h1>come back later</h1>", self.outage)(scope, receive, send)
            else:
                await app(scope, receive, send)

        return guarded

    def revoke_everything(self) -> None:
        self.access.clear()
        self.renewers.clear()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.registrations += 1
        self.clients[client_info.client_id] = client_info
        self.secrets += [client_info.client_secret] if client_info.client_secret else []

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.denies:
            raise AuthorizeError("access_denied", "the person said no")
        code = self._secret("code")
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=self.grants if self.grants is not None else params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(
            str(params.redirect_uri), code=code, state=params.state, iss=self.issuer_in_answer
        )

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.renewers.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshes += 1
        del self.renewers[refresh_token.token]
        await asyncio.sleep(self.pause_after_refresh)
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        return found if found is not None and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoke_everything()

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, renewer = self._secret("access"), self._secret("refresh")
        ends = int(time.time()) + self.lifetime
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=ends, resource=resource
        )
        self.renewers[renewer] = RefreshToken(token=renewer, client_id=client_id, scopes=scopes, resource=resource)
        return OAuthToken(
            access_token=access, refresh_token=renewer, expires_in=self.lifetime, scope=" ".join(scopes) or None
        )

    def _secret(self, kind: str) -> str:
        self.secrets.append(f"CANARY-{kind}-{secrets.token_urlsafe(24)}")
        return self.secrets[-1]


@contextlib.contextmanager
def serving(app: ASGIApp, port_socket: socket.socket) -> Iterator[None]:
    """Run an ASGI app in a thread until the block ends."""
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port_socket]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(10)


def free_port() -> tuple[socket.socket, str]:
    """A bound socket and the origin it will serve."""
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def protected_upstream(
    provider: AuthorizationServer,
    scopes: list[str] | None = None,
    required: list[str] | None = None,
    secret_lifetime: int | None = None,
) -> Iterator[str]:
    """An MCP endpoint behind `provider`; gives its URL."""
    listener, origin = free_port()
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(origin),
        resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
        validate_token_resource=True,
        required_scopes=required,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=scopes, default_scopes=scopes, client_secret_expiry_seconds=secret_lifetime
        ),
    )
    server = MCPServer("protected", auth=auth, auth_server_provider=provider)

    @server.tool()
    def greet() -> str:
        return "hello"

    with serving(provider.in_front_of(server.streamable_http_app(stateless_http=True, json_response=True)), listener):
        yield f"{origin}/mcp"


async def browse(link: str) -> dict[str, str]:
    """Be the person's browser up to the redirect; gives the query it would bring back."""
    async with aiohttp.ClientSession() as http, http.get(link, allow_redirects=False) as response:
        assert response.status == 302, await response.text()
        return dict(parse_qsl(urlsplit(response.headers["Location"]).query))


async def browse_to_the_end(link: str) -> tuple[int, str]:
    """Be the person's browser and follow the redirect to whoever listens there."""
    async with aiohttp.ClientSession() as http, http.get(link) as response:
        return response.status, await response.text()


async def call(url: str, header: str | None) -> tuple[int, str | None]:
    """One MCP request with this Authorization header: status and challenge."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    headers = {"Accept": "application/json, text/event-stream"}
    if header is not None:
        headers["Authorization"] = header
    async with aiohttp.ClientSession() as http, http.post(url, json=body, headers=headers) as response:
        return response.status, response.headers.get("WWW-Authenticate")
