"""How does a page change something? By the REST face, in this process: checked and recorded like anyone's wish.

The browser's own cookie goes along, so the dashboard can do nothing that its session may not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Raw, Struct, field

from mcpproxy.access.browser import CSRF_HEADER
from mcpproxy.asgi import replay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message

    from mcpproxy.access.browser import Browsers

PREFIX: Final = "/api/v1"
_AGENT: Final = b"mcpproxy dashboard"


class FieldProblem(Struct):
    """What is wrong with one field of a request."""

    field: str
    message: str


class _Details(Struct):
    fields: list[FieldProblem] = field(default_factory=list)


class Problem(Struct):
    """What went wrong."""

    code: str
    message: str
    details: Any = None

    @property
    def fields(self) -> dict[str, str]:
        """What is wrong with which field."""
        try:
            found = msgspec.convert(self.details, _Details).fields
        except msgspec.ValidationError:
            return {}
        return {problem.field: problem.message for problem in found}


class Answer(Struct):
    """What the REST face says: the data, raw, or the problem."""

    status: int = 0
    data: Raw = Raw(b"null")
    error: Problem | None = None
    request_id: str = ""

    def value(self) -> Any:
        """The data, decoded."""
        return msgspec.json.decode(self.data)


class Rest:
    """The REST face, asked from within."""

    def __init__(self, app: ASGIApp, browsers: Browsers) -> None:
        self._app = app
        self._browsers = browsers

    async def ask(
        self, request: Request, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None
    ) -> Answer:
        """Send one request on behalf of a page; `body` is a value, or JSON in bytes."""
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        scope = {
            **{key: request.scope[key] for key in ("type", "asgi", "http_version", "scheme", "client", "server")},
            "method": method,
            "path": PREFIX + path,
            "root_path": "",
            "query_string": urlencode(query or {}).encode(),
            "headers": self._headers(request, data),
        }
        status = 0
        parts: list[bytes] = []

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self._app(scope, replay(data, request.receive), send)
        answer = msgspec.json.decode(b"".join(parts), type=Answer)
        answer.status = status
        return answer

    def _headers(self, request: Request, data: bytes) -> list[tuple[bytes, bytes]]:
        session = request.scope["mcpproxy.session"]
        headers = [
            (b"cookie", request.headers.get("cookie", "").encode("latin-1")),
            (CSRF_HEADER, self._browsers.csrf_token(session).encode()),
            (b"user-agent", _AGENT),
            (b"x-request-id", request.scope["mcpproxy.request_id"].encode()),
        ]
        return [*headers, (b"content-type", b"application/json")] if data else headers
