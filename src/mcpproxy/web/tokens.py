"""`/ui/tokens`: which agents may come with what? Made here, shown once, ended at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.routing import Route

from mcpproxy.policy.operations import OPERATIONS
from mcpproxy.web.desk import desk_of, see
from mcpproxy.web.forms import Form, form
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LIFETIMES: Final = (("1d", "1 day"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("never", "never"))
_EMPTY: Final = {"name": "", "servers": "*", "tools": "*", "expires": "30d"}


async def show(request: Request) -> Response:
    """Every token, and the form for a new one."""
    return _page(request)


async def create(request: Request) -> Response:
    """Make a token; this page is the only one that shows it."""
    given = form(request)
    body = {
        "name": given.get("name"),
        "servers": _globs(given, "servers"),
        "tools": _globs(given, "tools"),
        "allow": given.all("allow"),
        "expires": given.get("expires"),
    }
    answer = await desk_of(request).rest.ask(request, "POST", "/tokens", body)
    if answer.error is None:
        return _page(request, created=answer.value())
    problems = {path.partition(".")[0]: text for path, text in answer.error.fields.items()}
    rest = None if problems else answer.error.message
    texts = _EMPTY | given.values()
    return _page(request, texts=texts, allow=given.all("allow"), problems=problems, problem=rest, status=answer.status)


async def revoke(request: Request) -> Response:
    """End a token."""
    answer = await desk_of(request).rest.ask(request, "DELETE", f"/tokens/{form(request).get('id')}")
    if answer.error is not None:
        return _page(request, problem=answer.error.message, status=answer.status)
    return see(url("/ui/tokens", done="revoked"))


def _globs(given: Form, name: str) -> list[str]:
    return given.raw(name).replace(",", " ").split()


def _page(request: Request, *, status: int = 200, **more: Any) -> Response:
    desk = desk_of(request)
    context = {
        "tokens": list(reversed(list(desk.rooms.tokens))),
        "texts": _EMPTY,
        "allow": ["read"],
        "problems": {},
        "created": None,
        "operations": OPERATIONS,
        "lifetimes": LIFETIMES,
        "endpoint": f"{request.url.scheme}://{request.url.netloc}/mcp",
        "auth_required": desk.rooms.loaded().config.mcp_auth_required,
    }
    return desk.page(request, "tokens.html", status=status, **context | more)


routes = [
    Route("/ui/tokens", show, methods=["GET"]),
    Route("/ui/tokens", create, methods=["POST"]),
    Route("/ui/tokens/revoke", revoke, methods=["POST"]),
]
