"""`/servers`: what is connected, and everything an operator does with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response
from msgspec import structs
from pydantic import BaseModel, Field

from mcpproxy.activity.record import Record
from mcpproxy.agent.tools import describe
from mcpproxy.api.changes import change, document, invalid, unmasked
from mcpproxy.api.envelope import ApiError, Ok, bad_field, ok, raw_ok, request_id
from mcpproxy.api.schema import json_body
from mcpproxy.api.services import Rooms, Services, identity, source
from mcpproxy.api.tools import ToolList
from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.mask import masked
from mcpproxy.config.models import Server, plain
from mcpproxy.config.write import merge_settings, remove_server, set_server
from mcpproxy.upstream.oauth import LoginFailed
from mcpproxy.upstream.server import Upstream, server_identity

router = APIRouter(prefix="/servers", tags=["servers"])

State = Literal[
    "disconnected", "connecting", "ready", "needs_login", "backing_off", "disabled", "quarantined", "failed"
]
Name = Annotated[str, Path(description="The server's name")]
Body = Annotated[dict[str, Any], Depends(document)]

_ENTRY = {"name": "files", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"]}
_CHANGES = {
    "enable": {"enabled": True},
    "disable": {"enabled": False},
    "quarantine": {"quarantined": True},
    "approve": {"quarantined": False},
}


class ServerView(BaseModel):
    """One server and how it is."""

    name: str
    state: State
    reason: str | None = Field(default=None, description="Why it is in that state, and what to do")
    protocol: Literal["stdio", "http", "sse"] = Field(
        description="Of a URL that was never reached, what is tried first"
    )
    tools: int
    stale: bool = Field(description="Whether the tools are the last known ones: the server is away")
    since: datetime
    retry_at: datetime | None = None
    login_url: str | None = None
    protocol_version: str | None = None
    server_version: str | None = None
    config: dict[str, Any] = Field(description="Its entry in the configuration, secrets hidden")
    warnings: list[str] | None = Field(default=None, description="Remarks on the entry that was sent")


class ServerList(BaseModel):
    """Every configured server."""

    servers: list[ServerView]


class ServerLogs(BaseModel):
    """The last lines of a server's log, oldest first."""

    lines: list[str]


class LoginLink(BaseModel):
    """Where a person logs in."""

    login_url: str


class Removed(BaseModel):
    """The server that is gone."""

    name: str


class Done(BaseModel):
    """The server and the state that it has now."""

    name: str
    state: State


def _view(rooms: Services, upstream: Upstream, warnings: tuple[str, ...] = ()) -> ServerView:
    listing = rooms.house.catalog.snapshot.listings.get(upstream.name)
    return ServerView(
        name=upstream.name,
        state=upstream.state.value,
        reason=rooms.house.mask(upstream.reason) or None,
        protocol=upstream.protocol or "http",  # type: ignore[arg-type]
        tools=len(listing.tools) if listing is not None else 0,
        stale=listing.stale if listing is not None else False,
        since=datetime.fromtimestamp(upstream.since, UTC),
        retry_at=datetime.fromtimestamp(upstream.retry_at, UTC) if upstream.retry_at is not None else None,
        login_url=upstream.login_link,
        protocol_version=(listing.protocol_version or None) if listing is not None else None,
        server_version=(listing.server_version or None) if listing is not None else None,
        config=masked(upstream.server),
        warnings=list(warnings) or None,
    )


def _find(rooms: Services, name: str) -> Upstream:
    upstream = rooms.house.pool.get(name)
    if upstream is None:
        raise ApiError(404, f"There is no server named {name[:64]!r}.")
    return upstream


def _configured(rooms: Services, name: str) -> Upstream:
    """A server that stands in the file, and can be changed there."""
    upstream = _find(rooms, name)
    if all(server.name != name for server in rooms.loaded().config.servers):
        raise ApiError(409, f"{name!r} is built in: it does not stand in the configuration file.")
    return upstream


def _parsed(entry: dict[str, Any]) -> tuple[Server, tuple[str, ...]]:
    """A server's entry, checked like the configuration file, and the remarks on it."""
    try:
        config, warnings = parse({"mcpServers": [entry]})
    except ConfigError as error:
        raise invalid(error) from None
    return config.servers[0], warnings


@router.get("", response_model=Ok[ServerList], response_model_exclude_none=True)
async def list_servers(request: Request, rooms: Rooms) -> dict[str, Any]:
    """Every configured server and its state."""
    return ok(request, ServerList(servers=[_view(rooms, upstream) for upstream in rooms.house.pool]))


@router.post(
    "",
    response_model=Ok[ServerView],
    response_model_exclude_none=True,
    status_code=201,
    openapi_extra=json_body(Server, "The server's entry, as it would stand in the configuration file", _ENTRY),
)
async def add_server(request: Request, body: Body, rooms: Rooms) -> dict[str, Any]:
    """Add a server to the configuration and start it."""
    server, warnings = _parsed(body)

    def add(content: dict[str, Any]) -> None:
        if any(known.name == server.name for known in (*parse(content)[0].servers, *_held(rooms))):
            raise ApiError(409, f"There is a server named {server.name!r} already.")
        set_server(content, server)

    await change(request, rooms, add)
    return ok(request, _view(rooms, _find(rooms, server.name), warnings))


def _held(rooms: Services) -> list[Server]:
    return [upstream.server for upstream in rooms.house.pool]


@router.get("/{name}", response_model=Ok[ServerView], response_model_exclude_none=True)
async def get_server(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """One server and its state."""
    return ok(request, _view(rooms, _find(rooms, name)))


@router.patch(
    "/{name}",
    response_model=Ok[ServerView],
    response_model_exclude_none=True,
    openapi_extra=json_body(
        None, "The keys to change; null takes one out, *** leaves a secret as it is", {"enabled": False}
    ),
)
async def change_server(request: Request, name: Name, body: Body, rooms: Rooms) -> dict[str, Any]:
    """Change a server's entry; the server is started anew with it."""
    upstream = _configured(rooms, name)
    if body.get("name", name) != name:
        raise bad_field("name", "a server cannot be renamed; add it under the new name and remove the old one")
    entry = plain(upstream.server)
    merge_settings(entry, unmasked(body, entry, masked(upstream.server)))
    server, warnings = _parsed(entry)
    await change(request, rooms, lambda content: set_server(content, server))
    return ok(request, _view(rooms, _find(rooms, name), warnings))


@router.delete("/{name}", response_model=Ok[Removed])
async def delete_server(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Take a server out of the configuration and stop it. What was approved of it is remembered."""
    _configured(rooms, name)
    await change(request, rooms, lambda content: _remove(content, name))
    return ok(request, Removed(name=name))


def _remove(content: dict[str, Any], name: str) -> None:
    if not remove_server(content, name):
        raise ApiError(404, f"There is no server named {name[:64]!r}.")


async def _switch(request: Request, rooms: Services, name: str, action: str) -> dict[str, Any]:
    server = structs.replace(_configured(rooms, name).server, **_CHANGES[action])
    await change(request, rooms, lambda content: set_server(content, server))
    return ok(request, Done(name=name, state=_find(rooms, name).state.value))


@router.post("/{name}/enable", response_model=Ok[Done])
async def enable_server(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Start a server and let its tools be used."""
    return await _switch(request, rooms, name, "enable")


@router.post("/{name}/disable", response_model=Ok[Done])
async def disable_server(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Stop a server and take its tools away, until it is enabled again."""
    return await _switch(request, rooms, name, "disable")


@router.post("/{name}/quarantine", response_model=Ok[Done])
async def quarantine_server(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Stop a server until it is approved."""
    return await _switch(request, rooms, name, "quarantine")


@router.post("/{name}/approve", response_model=Ok[Done])
async def approve_server(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Let a quarantined server run, and everything that it lists first; or approve all that waits on it."""
    server = _configured(rooms, name).server
    changes = await rooms.house.catalog.release(name, identity=server_identity(server), by=identity(request).key)
    rooms.note_changes(changes, source(request), request_id(request))
    return await _switch(request, rooms, name, "approve")


@router.post("/{name}/restart", response_model=Ok[Done])
async def restart_server(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Drop a server's connection, or end its process, and start it anew."""
    return await _restart(request, _find(rooms, name), rooms, "restarted")


async def _restart(request: Request, upstream: Upstream, rooms: Services, why: str) -> dict[str, Any]:
    await rooms.house.journal.write(
        Record(
            type="server_change",
            source=source(request),
            server_name=upstream.name,
            status="success",
            request_id=request_id(request),
            metadata={"change": why},
        )
    )
    await upstream.restart()
    return ok(request, Done(name=upstream.name, state=upstream.state.value))


@router.post("/{name}/login", response_model=Ok[LoginLink])
async def log_in(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Start a login and get the link for a person to open."""
    server = _find(rooms, name).server
    try:
        return ok(request, LoginLink(login_url=await rooms.logins.needed(server).begin_login()))
    except LoginFailed as error:
        raise ApiError(409, rooms.house.mask(str(error))) from None


@router.post("/{name}/logout", response_model=Ok[Done])
async def log_out(request: Request, name: Name, rooms: Rooms) -> dict[str, Any]:
    """Forget the login of a server, and connect to it anew."""
    upstream = _find(rooms, name)
    try:
        await rooms.logins.needed(upstream.server).logout()
    except LoginFailed as error:
        raise ApiError(409, rooms.house.mask(str(error))) from None
    return await _restart(request, upstream, rooms, "logged out")


@router.get("/{name}/tools", response_model=Ok[ToolList])
async def server_tools(request: Request, name: Name, rooms: Rooms) -> Response:
    """The tools of one server."""
    _find(rooms, name)
    listing = rooms.house.catalog.snapshot.listings.get(name)
    config = rooms.loaded().config
    tools = [describe(tool, config) for tool in listing.tools.values()] if listing is not None else []
    return raw_ok(request, msgspec.json.encode({"tools": tools, "total": len(tools)}))


@router.get("/{name}/logs", response_model=Ok[ServerLogs])
async def server_logs(
    request: Request,
    name: Name,
    rooms: Rooms,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many of the last lines")] = 200,
) -> dict[str, Any]:
    """The last lines that a server wrote to stderr, and our remarks on it."""
    return ok(request, ServerLogs(lines=_find(rooms, name).log.lines[-limit:]))
