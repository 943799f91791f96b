"""Who comes in, and with what? Names every request, asks for a key, and checks what all routes would check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpproxy.access.browser import CSRF_HEADER
from mcpproxy.access.identify import OPERATORS_BROWSER, Identity, Unidentified
from mcpproxy.activity.record import new_id
from mcpproxy.api.envelope import ApiError, failure_body
from mcpproxy.api.routes import Routes, allowed
from mcpproxy.asgi import BodyTooLarge, BodyTooSlow, Gone, Headers, is_local, read_body, replay, respond

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mcpproxy.api.services import Services

_CHANGING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_JSON = b"application/json"
_ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Door:
    """Stands before every route of the REST face."""

    def __init__(self, app: ASGIApp, routes: Routes, services: Services) -> None:
        self._app = app
        self._routes = routes
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = Headers(scope["headers"])
        named = headers.request_id() or new_id()
        answer = _Answer(send, named)
        try:
            identity = identify(self._services, scope, headers)
            if scope["method"] == "OPTIONS":
                await self._tell_methods(scope["path"], answer)
                return
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            self._routes.check(method, scope["path"], scope["query_string"])
            receive = await self._body(scope, receive, headers)
        except ApiError as error:
            more = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
            body = failure_body(error, named)
            await respond(answer, error.status, body, ((b"content-type", _JSON), *more))
        except Gone:
            return
        else:
            # A copy: the HTTP server looks at its own to see that the answer to HEAD has no body.
            inner = {**scope, "method": method, "mcpproxy.request_id": named, "mcpproxy.identity": identity}
            await self._app(inner, receive, answer)
            if scope["method"] == "HEAD":
                await answer.finish()

    async def _tell_methods(self, path: str, send: Send) -> None:
        methods = self._routes.methods(path)
        if not methods:
            raise ApiError(404, f"There is nothing at {path[:200]}.")
        await respond(send, 204, b"", ((b"allow", allowed(methods).encode()),))

    async def _body(self, scope: Scope, receive: Receive, headers: Headers) -> Receive:
        if scope["method"] == "HEAD":
            return _gone
        if scope["method"] not in _CHANGING:
            return receive
        try:
            body = await read_body(receive, headers, self._services.loaded().config.max_request_bytes)
        except (BodyTooLarge, BodyTooSlow) as error:
            raise ApiError(error.status, str(error)) from None
        kind = headers.raw(b"content-type").partition(b";")[0].strip().lower()
        # Forms and plain text are what other sites can make a browser send without asking.
        if (body or kind) and kind != _JSON:
            raise ApiError(415, "The body must be JSON: send Content-Type: application/json.")
        return replay(body, receive)


def identify(services: Services, scope: Scope, headers: Headers) -> Identity:
    """Who asks: the operator by key, browser or socket, or an agent by its token."""
    authorization, api_key = headers.get(b"authorization"), headers.get(b"x-api-key")
    if authorization is None and api_key is None:
        session = services.browsers.find(headers.get(b"cookie"))
        if session is not None:
            if not services.browsers.may(session, scope["method"], headers.get(CSRF_HEADER)):
                raise ApiError(403, "A change from a browser needs the X-CSRF-Token that our pages carry.")
            return OPERATORS_BROWSER
    try:
        return services.gate.identify(authorization, api_key, required=True, local=is_local(scope))
    except Unidentified as error:
        challenge = {"WWW-Authenticate": 'Bearer realm="mcpproxy"'} if error.status == 401 else None
        raise ApiError(error.status, str(error), headers=challenge) from None


class _Answer:
    """The way out: every answer carries the request's id."""

    def __init__(self, send: Send, named: str) -> None:
        self._send = send
        self._headers = [(b"x-request-id", named.encode()), *_ALWAYS]
        self._open = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._open = True
            message = {**message, "headers": [*message.get("headers", ()), *self._headers]}
        elif message["type"] == "http.response.body" and not message.get("more_body"):
            self._open = False
        await self._send(message)

    async def finish(self) -> None:
        """End a stream of which only the headers were asked for."""
        if self._open:
            await self({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone() -> Message:
    """What is received after HEAD: nobody waits for a body, so streams end at once."""
    return {"type": "http.disconnect"}
