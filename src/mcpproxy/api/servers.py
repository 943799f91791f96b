"""`/servers`: what is connected, and everything an operator does with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from msgspec import structs
from pydantic import BaseModel, ConfigDict

from mcpproxy.agent.tools import describe
from mcpproxy.api.envelope import ApiError, Ok, ok, raw_ok
from mcpproxy.api.services import Services, operator, services
from mcpproxy.api.tools import ToolList
from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.mask import masked, unmask
from mcpproxy.config.models import Server, plain
from mcpproxy.config.write import remove_server, set_server
from mcpproxy.upstream.server import Upstream

router = APIRouter(prefix="/servers", tags=["servers"], dependencies=[Depends(operator)])

Rooms = Annotated[Services, Depends(services)]
State = Literal[
    "disconnected", "connecting", "ready", "needs_login", "backing_off", "disabled", "quarantined", "failed"
]


class ServerView(BaseModel):
    """One server and how it is."""

    name: str
    state: State
    reason: str | None = None
    protocol: Literal["stdio", "http", "sse"] | None = None
    tools: int
    stale: bool = False
    since: datetime
    retry_at: datetime | None = None
    login_url: str | None = None
    protocol_version: str | None = None
    server_version: str | None = None
    config: dict[str, Any]


class ServerList(BaseModel):
    """Every configured server."""

    servers: list[ServerView]


class ServerBody(BaseModel):
    """A server's entry, as it stands in the configuration file."""

    model_config = ConfigDict(extra="allow")

    name: str


class ServerPatch(BaseModel):
    """The keys to change; null takes one out."""

    model_config = ConfigDict(extra="allow")


class ServerLogs(BaseModel):
    """The last lines of a server's log, oldest first."""

    lines: list[str]


class LoginLink(BaseModel):
    """Where a person logs in."""

    login_url: str


class Done(BaseModel):
    """What was done to which server."""

    name: str
    state: State


def _view(rooms: Services, upstream: Upstream) -> ServerView:
    listing = rooms.house.catalog.snapshot.listings.get(upstream.name)
    return ServerView(
        name=upstream.name,
        state=upstream.state.value,
        reason=upstream.reason or None,
        protocol=upstream.protocol,  # type: ignore[arg-type]
        tools=len(listing.tools) if listing is not None else 0,
        stale=listing.stale if listing is not None else False,
        since=datetime.fromtimestamp(upstream.since, UTC),
        retry_at=datetime.fromtimestamp(upstream.retry_at, UTC) if upstream.retry_at is not None else None,
        login_url=upstream.login_link,
        protocol_version=listing.protocol_version or None if listing is not None else None,
        server_version=listing.server_version or None if listing is not None else None,
        config=masked(upstream.server),
    )


def _find(rooms: Services, name: str) -> Upstream:
    upstream = rooms.house.pool.get(name)
    if upstream is None:
        raise ApiError(404, f"There is no server named {name[:64]!r}.")
    return upstream


@router.get("", response_model=Ok[ServerList], response_model_exclude_none=True)
async def list_servers(request: Request, rooms: Rooms) -> dict[str, Any]:
    """Every configured server and its state."""
    return ok(request, ServerList(servers=[_view(rooms, upstream) for upstream in rooms.house.pool]))


@router.post("", response_model=Ok[ServerView], response_model_exclude_none=True, status_code=201)
async def add_server(request: Request, body: ServerBody, rooms: Rooms) -> dict[str, Any]:
    """Add a server to the configuration and start it."""
    if rooms.house.pool.get(body.name) is not None:
        raise ApiError(409, f"There is a server named {body.name[:64]!r} already.")
    server = _parsed(body.model_dump(mode="json", exclude_unset=True))
    await rooms.change_config(lambda document: set_server(document, server))
    return ok(request, _view(rooms, _find(rooms, body.name)))


def _parsed(entry: dict[str, Any]) -> Server:
    """A server's entry, checked like the configuration file."""
    try:
        return parse({"mcpServers": [entry]})[0].servers[0]
    except ConfigError as error:
        raise ApiError(422, str(error), details={"fields": [problem.path for problem in error.problems]}) from None


@router.get("/{name}", response_model=Ok[ServerView], response_model_exclude_none=True)
async def get_server(request: Request, name: str, rooms: Rooms) -> dict[str, Any]:
    """One server and its state."""
    return ok(request, _view(rooms, _find(rooms, name)))


@router.patch("/{name}", response_model=Ok[ServerView], response_model_exclude_none=True)
async def change_server(request: Request, name: str, body: ServerPatch, rooms: Rooms) -> dict[str, Any]:
    """Change a server's entry; the server is restarted with it."""
    upstream = _find(rooms, name)
    changes = body.model_dump(mode="json", exclude_unset=True)
    if changes.get("name", name) != name:
        raise ApiError(422, "name: a server cannot be renamed; add it under the new name and remove the old one.")
    before, shown = plain(upstream.server), masked(upstream.server)
    merged = {**before, **unmask(changes, before, shown)}
    server = _parsed({key: value for key, value in merged.items() if value is not None})
    await rooms.change_config(lambda document: set_server(document, server))
    return ok(request, _view(rooms, _find(rooms, name)))


@router.delete("/{name}", response_model=Ok[dict[str, str]])
async def delete_server(request: Request, name: str, rooms: Rooms) -> dict[str, Any]:
    """Take a server out of the configuration and stop it. What was approved of it is remembered."""
    _find(rooms, name)
    await rooms.change_config(lambda document: _remove(document, name))
    return ok(request, {"name": name})


def _remove(document: dict[str, Any], name: str) -> None:
    if not remove_server(document, name):
        raise ApiError(409, f"{name!r} does not stand in the configuration file, so it cannot be taken out of it.")


@router.post("/{name}/login", response_model=Ok[LoginLink])
async def log_in(request: Request, name: str, rooms: Rooms) -> dict[str, Any]:
    """Start a login and get the link for a person to open."""
    _find(rooms, name)
    return ok(request, LoginLink(login_url=await rooms.begin_login(name)))


@router.post("/{name}/{action}", response_model=Ok[Done])
async def act(
    request: Request, name: str, action: Literal["enable", "disable", "restart", "quarantine", "approve"], rooms: Rooms
) -> dict[str, Any]:
    """Enable, disable, restart, quarantine or approve a server."""
    upstream = _find(rooms, name)
    if action == "restart":
        await upstream.restart()
    else:
        changes = {
            "enable": {"enabled": True},
            "disable": {"enabled": False},
            "quarantine": {"quarantined": True},
            "approve": {"quarantined": False},
        }[action]
        server = structs.replace(upstream.server, **changes)
        await rooms.change_config(lambda document: set_server(document, server))
    return ok(request, Done(name=name, state=_find(rooms, name).state.value))


@router.get("/{name}/tools", response_model=Ok[ToolList])
async def server_tools(request: Request, name: str, rooms: Rooms) -> Response:
    """The tools of one server."""
    _find(rooms, name)
    listing = rooms.house.catalog.snapshot.listings.get(name)
    config = rooms.loaded().config
    tools = [describe(tool, config) for tool in listing.tools.values()] if listing is not None else []
    return raw_ok(request, msgspec.json.encode({"tools": tools, "total": len(tools)}))


@router.get("/{name}/logs", response_model=Ok[ServerLogs])
async def server_logs(
    request: Request, name: str, rooms: Rooms, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> dict[str, Any]:
    """The last lines that a server wrote to stderr, and our remarks on it."""
    return ok(request, ServerLogs(lines=_find(rooms, name).log.lines[-limit:]))
