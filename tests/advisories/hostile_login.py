"""A server that wants a login, and whose authorization server names an endpoint of the test's choice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.support.http_servers import in_a_thread


class HostileLogin:
    """One origin for both."""

    def __init__(self) -> None:
        self.origin = ""
        self.endpoint = ""

    def _answer(self, path: str) -> tuple[int, dict[str, Any]]:
        if path.startswith("/.well-known/oauth-protected-resource"):
            return 200, {"resource": f"{self.origin}/mcp", "authorization_servers": [self.origin]}
        if path.startswith("/.well-known/"):
            return 200, {
                "issuer": self.origin,
                "authorization_endpoint": self.endpoint,
                "token_endpoint": f"{self.origin}/token",
                "registration_endpoint": f"{self.origin}/register",
                "response_types_supported": ["code"],
            }
        if path == "/register":
            return 201, {"client_id": "us", "redirect_uris": ["http://127.0.0.1:8080/oauth/callback"]}
        return 401, {"error": "who are you"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        status, body = self._answer(scope["path"])
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})


@contextlib.contextmanager
def hostile_login() -> Iterator[HostileLogin]:
    """Run one for as long as the block lasts."""
    server = HostileLogin()
    with in_a_thread(server) as origin:
        server.origin = origin
        yield server
