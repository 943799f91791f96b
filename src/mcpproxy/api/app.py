"""Which routes are there? One router per resource, behind one door that asks who it is."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI

import mcpproxy
from mcpproxy.api import (
    activity,
    approval,
    config,
    dashboard,
    docs,
    events,
    explain,
    metrics,
    servers,
    status,
    tokens,
    tools,
)
from mcpproxy.api.door import Door
from mcpproxy.api.envelope import FAILURES
from mcpproxy.api.errors import answer_errors
from mcpproxy.api.routes import Routes
from mcpproxy.api.schema import complete
from mcpproxy.api.services import AllTurns, Services, operator

PREFIX = "/api/v1"
METRICS = "/metrics"

_ROUTERS: tuple[APIRouter, ...] = (
    status.router,
    servers.router,
    tools.router,
    explain.router,
    approval.router,
    activity.router,
    events.router,
    tokens.router,
    config.router,
    dashboard.router,
)
_DESCRIPTION = """One MCP endpoint in front of all your MCP servers.

Send the API key as X-API-Key or as Authorization: Bearer. An agent token does for finding and calling tools.

Every answer is {"success": true, "data", "request_id"}, or {"success": false, "error": {"code", "message"},
"request_id"}. The request_id is the X-Request-Id that you sent, and stands on the records of what was done."""


def build(services: Services) -> Door:
    """The REST application."""
    app = FastAPI(
        title="mcpproxy",
        version=mcpproxy.__version__,
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.services = services
    app.state.turns = AllTurns.fresh()
    for router in _ROUTERS:
        # Finding and calling tools is for tokens too, within their scope.
        only = [] if router is tools.router else [Depends(operator)]
        app.include_router(router, prefix=PREFIX, responses=FAILURES, dependencies=only)
    document = complete(app.openapi())
    app.include_router(docs.router_for(document), prefix=PREFIX, dependencies=[Depends(operator)])
    app.add_api_route(METRICS, metrics.metrics, include_in_schema=False, dependencies=[Depends(operator)])
    answer_errors(app)
    unlisted = (METRICS, f"{PREFIX}/openapi.json", f"{PREFIX}/docs")
    return Door(app, Routes(document, unlisted), services)
