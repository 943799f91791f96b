"""Which pages are there? One module per page, behind one guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from mcpproxy.activity.filters import BadFilter
from mcpproxy.api.envelope import ApiError
from mcpproxy.storage.errors import StorageError
from mcpproxy.web import (
    activity,
    approvals,
    edit,
    imports,
    live,
    login,
    overview,
    servers,
    settings,
    tokens,
    tool,
    tools,
)
from mcpproxy.web.desk import Desk, desk_of, see
from mcpproxy.web.guard import STATIC, Guard
from mcpproxy.web.render import static
from mcpproxy.web.rest import Rest

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from mcpproxy.api.services import Services

PAGES = (overview, servers, edit, imports, tools, tool, approvals, activity, live, tokens, settings, login)


async def _home(request: Request) -> Response:
    return see("/ui/")


async def _nav(request: Request) -> Response:
    """The list of pages alone, to be drawn anew in the page at `at`."""
    return desk_of(request).page(request, "_nav.html", path=request.query_params.get("at", ""))


async def _failed(request: Request, error: Exception) -> Response:
    """A page that says what went wrong."""
    match error:
        case HTTPException():
            status, text = error.status_code, str(error.detail)
        case ApiError():
            status, text = error.status, error.message
        case BadFilter() | StorageError():
            status, text = 422 if isinstance(error, BadFilter) else 503, str(error)
        case _:
            status, text = 500, "Something went wrong here; the log says more."
    return desk_of(request).page(request, "error.html", status=status, problem=text)


def build(services: Services, rest: ASGIApp) -> ASGIApp:
    """The dashboard."""
    routes = [route for page in PAGES for route in page.routes]
    routes += [Route("/", _home), Route("/ui", _home), Route("/ui/nav", _nav), Route(f"{STATIC}{{name}}", static)]
    errors = (HTTPException, ApiError, BadFilter, StorageError, Exception)
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(errors, _failed))
    app.state.desk = Desk(services, Rest(rest, services.browsers))
    return Guard(app, services.browsers, lambda: services.loaded().config.max_request_bytes)
