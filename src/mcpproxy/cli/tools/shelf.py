"""Which tools are there, where no daemon runs to ask? Those of the last lists; servers never listed are asked now."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from mcpproxy.cli.errors import FAILED, Failure

if TYPE_CHECKING:
    from mcpproxy.app import App
    from mcpproxy.catalog.approval import State
    from mcpproxy.catalog.listing import Listing
    from mcpproxy.catalog.tool import Tool
    from mcpproxy.cli.session import Session
    from mcpproxy.cli.tools.trust import Judged

_PATIENCE: Final = 30.0


def listings(session: Session) -> dict[str, Listing]:
    """The tools that may be used of every server that is enabled and approved, by server."""
    from mcpproxy.catalog.visible import wanted

    in_use = {server.name: server for server in session.config.servers if server.enabled and not server.quarantined}
    known = {name: each.approved for name, each in _judged(session).items()}
    new = [name for name in in_use if name not in known]
    if new:
        with session.screen.working(f"Asking {', '.join(new)} for their tools"):
            known |= asyncio.run(_ask(session, new))
    return {name: wanted(known[name], in_use[name]) for name in in_use if name in known}


def known_tools(session: Session) -> list[Tool]:
    """Every tool on record of a server that is in use, without asking anybody."""
    return [tool for each in _judged(session).values() for tool in each.live.tools.values()]


def waiting_states(session: Session) -> dict[str, State]:
    """How the tools stand that wait for an operator, by `server:tool`."""
    return {one.id: one.state for each in _judged(session).values() for one in each.waiting.values()}


def described(session: Session, server: str | None = None) -> Raw:
    """What the daemon would answer: every tool, or those of one server."""
    from mcpproxy.agent.tools import describe

    found = listings(session)
    tools = [
        describe(tool, session.config)
        for name, listing in found.items()
        if server in (None, name)
        for tool in listing.tools.values()
    ]
    return Raw(msgspec.json.encode({"tools": tools, "total": len(tools)}))


def all_tools(session: Session, server: str | None = None) -> Raw:
    """Every tool, or those of one server, from the daemon or without it."""
    if server is not None:
        _check_server(session, server)
    if session.daemon is not None:
        return session.daemon.get("/tools", {"server": server})
    return described(session, server)


def one_tool(session: Session, name: str) -> dict[str, Any]:
    """The tool of a `server:tool` name."""
    from mcpproxy.cli.screen import value_of

    server, colon, _ = name.partition(":")
    if not colon:
        message = f"{name!r} is not a tool's full name: write it as SERVER:TOOL."
        raise Failure(FAILED, message, "See what there is: mcpproxy tools list")
    tools: list[dict[str, Any]] = value_of(all_tools(session, server))["tools"]
    for tool in tools:
        if tool["name"] == name:
            return tool
    raise Failure(FAILED, f"there is no tool {name!r}.{_nearest(name, tools)}", code="UNKNOWN_TOOL")


def _nearest(name: str, tools: list[dict[str, Any]]) -> str:
    import difflib

    close = difflib.get_close_matches(name, [tool["name"] for tool in tools], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _check_server(session: Session, server: str) -> None:
    from mcpproxy.cli.screen import value_of
    from mcpproxy.cli.upstream.change import known

    if session.daemon is None:
        known(session, server)
    elif all(each["name"] != server for each in value_of(session.daemon.get("/servers"))["servers"]):
        message = f"there is no server named {server!r}."
        raise Failure(FAILED, message, "See: mcpproxy upstream list", code="UNKNOWN_SERVER")


def _judged(session: Session) -> Mapping[str, Judged]:
    from mcpproxy.cli.tools.trust import judged
    from mcpproxy.storage.engine import FILE_NAME

    if session.config.storage == "sqlite" and not (session.data_dir / FILE_NAME).exists():
        return {}
    with session.storage() as storage:
        return judged(session, storage)


async def _ask(session: Session, servers: Collection[str]) -> dict[str, Listing]:
    from mcpproxy.cli.alone import app_with

    async with app_with(session, servers).running() as app:
        await asyncio.gather(*(_ready(session, app, name) for name in servers))
        return dict(app.catalog.snapshot.listings)


async def _ready(session: Session, app: App, name: str) -> None:
    from mcpproxy.upstream.server import NotReady

    upstream = app.pool.get(name)
    assert upstream is not None
    try:
        await upstream.ready(_PATIENCE)
    except NotReady as error:
        session.screen.note(f"{name} is {error.state}: {error.reason}", "yellow")
