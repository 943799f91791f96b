"""`/ui/login`: whose browser is this? One that opened a fresh link, or whose user has the key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from mcpproxy.access.browser import COOKIE, set_cookie
from mcpproxy.web.desk import desk_of, see
from mcpproxy.web.forms import form
from mcpproxy.web.guard import LOGIN

if TYPE_CHECKING:
    from starlette.requests import Request

HOME = "/ui/"


async def show(request: Request) -> Response:
    """Ask for the key; or, where a link was opened, only whether to go on: a program that looks at it uses it up."""
    code = request.query_params.get("code", "")
    wanted = _inside(request.query_params.get("next", ""))
    if request.scope["mcpproxy.session"] is not None and not code:
        return see(wanted)
    return desk_of(request).page(request, "login.html", code=code, wanted=wanted)


async def log_in(request: Request) -> Response:
    """Open a session."""
    desk = desk_of(request)
    given, browsers = form(request), desk.rooms.browsers
    code, key, wanted = given.get("code"), given.get("key"), _inside(given.get("next"))
    session = browsers.accept(code) if code else browsers.open() if desk.rooms.gate.is_key(key) else None
    if session is None:
        used = "This link was used already, or is too old. `mcpproxy dashboard` prints another."
        problem = used if code else "This is not the API key."
        return desk.page(request, "login.html", status=401, code="", wanted=wanted, problem=problem)
    answer = see(wanted)
    answer.headers["set-cookie"] = set_cookie(session, secure=request.url.scheme == "https")
    return answer


async def log_out(request: Request) -> Response:
    """End the session."""
    desk_of(request).rooms.browsers.close(request.scope["mcpproxy.session"])
    answer = see(f"{LOGIN}?done=logged_out")
    answer.headers["set-cookie"] = f"{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"
    return answer


def _inside(path: str) -> str:
    """A page of ours to go on to, whatever the address said."""
    inside = path.startswith(HOME) and "\\" not in path and path.isprintable() and not path.startswith(LOGIN)
    return path if inside else HOME


routes = [
    Route(LOGIN, show, methods=["GET"]),
    Route(LOGIN, log_in, methods=["POST"]),
    Route("/ui/logout", log_out, methods=["POST"]),
]
