"""What does the REST face lean on? The rooms it asks, in one value."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from msgspec import Struct

from mcpproxy.api.envelope import ApiError, busy, request_id
from mcpproxy.calls.model import Caller

if TYPE_CHECKING:
    from mcpproxy.access.browser import Browsers
    from mcpproxy.access.identify import Gate, Identity
    from mcpproxy.access.tokens import Tokens
    from mcpproxy.activity.follow import Feed
    from mcpproxy.activity.record import Source
    from mcpproxy.agent.sdk import Dispatch
    from mcpproxy.calls.house import House
    from mcpproxy.calls.pipeline import Pipeline
    from mcpproxy.catalog.changes import Change
    from mcpproxy.config.load import Loaded
    from mcpproxy.storage.engine import Storage
    from mcpproxy.upstream.oauth import Logins

_MOST_CLIENT_NAME = 200


class Services(Struct, frozen=True, kw_only=True):
    """The rooms behind the REST face."""

    loaded: Callable[[], Loaded]
    loaded_at: Callable[[], float]
    config_error: Callable[[], str | None]
    started_at: float
    address: str
    """Where we listen, for a person to open; empty where only the unix socket is there."""
    data_dir: Path
    storage: Storage
    house: House
    pipeline: Pipeline
    gate: Gate
    browsers: Browsers
    tokens: Tokens
    feed: Feed
    sessions: Callable[[], int]
    """How many MCP sessions are open."""
    stopping: asyncio.Event
    """Set when the proxy is asked to stop: streams end then."""
    change_config: Callable[[Callable[[dict[str, Any]], None]], Awaitable[None]]
    """Change the file, and return once the change is in force."""
    note_changes: Callable[[Iterable[Change], Source, str], None]
    """Put what an operator decided about tools on record: the changes, by which face, request id."""
    logins: Logins
    dispatch: Dispatch
    """Use a built-in tool of the MCP face, with all that goes with it."""


class Turns:
    """How many may do something costly at the same time; who comes later is told to come again."""

    def __init__(self, most: int, what: str, seconds: int = 1) -> None:
        self._most = most
        self._what = what
        self._seconds = seconds
        self.taken = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """One turn, for the length of the block."""
        if self.taken >= self._most:
            raise busy(f"{self._what}; try again in {self._seconds} s.", self._seconds)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


class AllTurns(Struct, frozen=True):
    """The turns of one application."""

    queries: Turns
    exports: Turns
    verifications: Turns
    streams: Turns

    @classmethod
    def fresh(cls) -> AllTurns:
        """None taken."""
        return cls(
            Turns(64, "64 questions to the activity log are under way"),
            Turns(4, "4 exports are under way", 10),
            Turns(1, "the activity log is being verified already", 10),
            Turns(200, "200 event streams are open", 30),
        )


def services(request: Request) -> Services:
    """The rooms, for a route."""
    found: Services = request.app.state.services
    return found


def turns(request: Request) -> AllTurns:
    """The turns, for a route."""
    found: AllTurns = request.app.state.turns
    return found


def identity(request: Request) -> Identity:
    """Who asks."""
    found: Identity = request.scope["mcpproxy.identity"]
    return found


def operator(request: Request) -> None:
    """Let only the operator on; a token is for calls."""
    if not identity(request).admin:
        raise ApiError(403, "This needs the API key: a token is for finding and calling tools.")


def source(request: Request) -> Source:
    """By which face a request comes: our command line says so."""
    return "cli" if request.headers.get("x-mcpproxy-client") == "cli" else "api"


def caller(request: Request) -> Caller:
    """Who asks, as the way of a call knows it."""
    who = identity(request)
    agent = request.headers.get("user-agent")
    return Caller(
        source=source(request),
        key=who.key,
        scope=who.scope,
        admin=who.admin,
        client_name=agent[:_MOST_CLIENT_NAME] if agent else None,
    )


Rooms = Annotated[Services, Depends(services)]
MyTurns = Annotated[AllTurns, Depends(turns)]
RequestId = Annotated[str, Depends(request_id)]
