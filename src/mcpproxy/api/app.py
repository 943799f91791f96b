"""Which routes are there? One router per resource, behind one door that asks who it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import mcpproxy
from mcpproxy.access.identify import Unidentified
from mcpproxy.activity.record import new_id
from mcpproxy.api import envelope, servers, status, tools
from mcpproxy.api.services import Services
from mcpproxy.asgi import BodyTooLarge, BodyTooSlow, Gone, Headers, read_body, replay, respond

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

PREFIX = "/api/v1"


def build(services: Services) -> Door:
    """The REST application."""
    app = FastAPI(
        title="mcpproxy",
        version=mcpproxy.__version__,
        description="One MCP endpoint in front of all your MCP servers.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=envelope.FAILURES,
    )
    app.state.services = services
    for module in (status, servers, tools):
        app.include_router(module.router, prefix=PREFIX)
    app.add_exception_handler(envelope.ApiError, envelope.on_api_error)
    app.add_exception_handler(RequestValidationError, envelope.on_invalid)
    app.add_exception_handler(HTTPException, envelope.on_http_error)
    app.add_exception_handler(Exception, envelope.on_crash)
    return Door(app, services)


class Door:
    """Names every request, bounds its body, and lets in whoever has a key."""

    def __init__(self, app: FastAPI, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = Headers(scope)
        request_id = headers.request_id() or new_id()
        scope["mcpproxy.request_id"] = request_id
        named = (b"x-request-id", request_id.encode())

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), named]}
            await send(message)

        try:
            scope["mcpproxy.identity"] = self._services.gate.identify(
                headers.get(b"authorization"), headers.get(b"x-api-key"), required=True
            )
            if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
                limit = self._services.loaded().config.max_request_bytes
                receive = replay(await read_body(receive, headers, limit), receive)
        except Unidentified as error:
            await _turn_away(send_named, 401, str(error), request_id)
        except (BodyTooLarge, BodyTooSlow) as error:
            await _turn_away(send_named, error.status, str(error), request_id)
        except Gone:
            return
        else:
            await self._app(scope, receive, send_named)


async def _turn_away(send: Any, status_code: int, message: str, request_id: str) -> None:
    code = {401: "UNAUTHORIZED", 408: "TOO_SLOW", 413: "TOO_LARGE"}[status_code]
    body = {"success": False, "error": {"code": code, "message": message}, "request_id": request_id}
    headers = ((b"www-authenticate", b'Bearer realm="mcpproxy"'),) if status_code == 401 else ()
    await respond(send, status_code, msgspec.to_builtins(body), headers)
