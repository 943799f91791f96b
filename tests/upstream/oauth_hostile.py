"""An upstream and authorization server that answers whatever a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backends.fail
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from tests.upstream.oauth_server import free_port, serving

from mcpproxy.config.models import OAuth
from mcpproxy.upstream.oauth.session import OAuthSession
from mcpproxy.upstream.tokens import TokenStore

RESOURCE = "/.well-known/oauth-protected-resource/mcp"
METADATA = "/.well-known/oauth-authorization-server"
CALLBACK = "http://127.0.0.1:8080/oauth/callback"


class HostileServer:
    """One origin; `answers` maps a path to status, headers and body."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.say("/mcp", 401, {"error": "who are you"})
        self.say(RESOURCE, 200, {"resource": f"{origin}/mcp", "authorization_servers": [origin]})
        self.say_metadata()
        self.say("/register", 201, {"client_id": "us", "redirect_uris": ["http://127.0.0.1:8080/oauth/callback"]})

    def say(self, path: str, status: int, body: object, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[path] = (status, {name.replace("_", "-"): value for name, value in headers.items()}, data)

    def say_metadata(self, **changes: Any) -> None:
        document = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "response_types_supported": ["code"],
        }
        self.say(METADATA, 200, {**document, **changes})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await Request(scope, receive).body()
        self.asked.append(f"{scope['method']} {scope['path']}")
        status, headers, body = self.answers.get(scope["path"], (404, {}, b"nothing here"))
        await Response(body, status, headers, "application/json")(scope, receive, send)


@contextlib.contextmanager
def hostile_server() -> Iterator[HostileServer]:
    listener, origin = free_port()
    server = HostileServer(origin)
    with serving(server, listener):
        yield server


@pytest.fixture(autouse=True)
def no_keyring() -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())  # type: ignore[no-untyped-call]


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"a process was started: {args}")

    for name in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.execv", "webbrowser.open"):
        monkeypatch.setattr(name, refuse)


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with hostile_server() as running:
        yield running


def session_for(server: HostileServer, folder: Path, oauth: OAuth | None = None) -> OAuthSession:
    return OAuthSession("notes", f"{server.origin}/mcp", oauth, TokenStore(folder), redirect_uri=CALLBACK)
