"""Is this browser let in, and is the change its own wish? Stands before every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote

from mcpproxy.activity.record import new_id
from mcpproxy.asgi import BodyTooLarge, BodyTooSlow, Gone, Headers, read_body, respond

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mcpproxy.access.browser import Browsers, Session

LOGIN: Final = "/ui/login"
STATIC: Final = "/ui/static/"
CSRF_FIELD: Final = "csrf"
_FORM: Final = b"application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 2000
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS: Final = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not no-referrer: a form would then be sent with the origin `null`, which is turned away.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")


class _Refused(Exception):
    """A form that is not taken, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Guard:
    """Lets browsers in that have a session; the others get to the login page and no further."""

    def __init__(self, app: ASGIApp, browsers: Browsers, most_bytes: Callable[[], int]) -> None:
        self._app = app
        self._browsers = browsers
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers, path = Headers(scope["headers"]), scope["path"]
        send = _with_headers(send, lasting=path.startswith(STATIC))
        session = self._browsers.find(headers.get(b"cookie"))
        if session is None and path != LOGIN and not path.startswith(STATIC):
            await _to_login(scope, headers, send)
            return
        try:
            fields = await self._form(receive, headers, session) if scope["method"] == "POST" else []
        except (_Refused, BodyTooLarge, BodyTooSlow) as error:
            await respond(send, error.status, str(error).encode(), (_TEXT,))
        except Gone:
            return
        else:
            own = {"mcpproxy.session": session, "mcpproxy.request_id": new_id(), "mcpproxy.form": fields}
            await self._app({**scope, **own}, receive, send)

    async def _form(self, receive: Receive, headers: Headers, session: Session | None) -> list[tuple[str, str]]:
        """The fields of a form, once it is known to be this session's own wish."""
        if headers.raw(b"content-type").partition(b";")[0].strip().lower() != _FORM:
            raise _Refused(415, "Send a form.")
        body = await read_body(receive, headers, self._most_bytes())
        try:
            fields = parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise _Refused(400, "The form has too many fields.") from None
        token = next((value for name, value in fields if name == CSRF_FIELD), None)
        if session is not None and not self._browsers.may(session, "POST", token):
            raise _Refused(403, "This form is not of this session. Go back, load the page again, and repeat it.")
        return fields


async def _to_login(scope: Scope, headers: Headers, send: Send) -> None:
    """Send a browser to the login page, and from there back to where it wanted to go."""
    if headers.raw(b"accept") == b"text/event-stream":  # a stream cannot go there; so it ends without being retried
        await respond(send, 204, b"")
        return
    wanted = scope["path"]
    if scope["query_string"]:
        wanted += "?" + scope["query_string"].decode("latin-1")
    reading = scope["method"] in ("GET", "HEAD") and not headers.raw(b"hx-request")
    target = f"{LOGIN}?next={quote(wanted)}" if reading and wanted not in ("/", "/ui", "/ui/") else LOGIN
    # A part of a page cannot be replaced by the login page: its script is told to go there as a whole.
    name, status = (b"hx-redirect", 401) if headers.raw(b"hx-request") else (b"location", 303)
    await respond(send, status, b"", ((name, target.encode()), _TEXT))


def _with_headers(send: Send, *, lasting: bool) -> Send:
    caching = (b"cache-control", b"public, max-age=31536000, immutable" if lasting else b"no-store")

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [pair for pair in message.get("headers", ()) if pair[0] != b"cache-control"]
            message = {**message, "headers": [*given, caching, *_ALWAYS]}
        await send(message)

    return guarded
