"""What does the REST face lean on? The rooms it asks, in one value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import Request
from msgspec import Struct

from mcpproxy.api.envelope import ApiError

if TYPE_CHECKING:
    from mcpproxy.access.identify import Gate, Identity
    from mcpproxy.calls.house import House
    from mcpproxy.calls.pipeline import Pipeline
    from mcpproxy.config.load import Loaded


class Services(Struct, frozen=True, kw_only=True):
    """The rooms behind the REST face."""

    loaded: Callable[[], Loaded]
    loaded_at: Callable[[], float]
    config_error: Callable[[], str | None]
    started_at: float
    data_dir: Path
    house: House
    pipeline: Pipeline
    gate: Gate
    change_config: Callable[[Callable[[dict[str, Any]], None]], Awaitable[None]]
    """Change the file, and return once the change is in force."""
    begin_login: Callable[[str], Awaitable[str]]
    """Start the login of a server; gives the link for a person."""


def services(request: Request) -> Services:
    """The rooms, for a route."""
    found: Services = request.app.state.services
    return found


def identity(request: Request) -> Identity:
    """Who asks."""
    found: Identity = request.scope["mcpproxy.identity"]
    return found


def operator(request: Request) -> None:
    """Let only the holder of the API key on; a token is for calls."""
    if not identity(request).admin:
        raise ApiError(403, "This needs the API key: a token is for finding and calling tools.")
