"""`/config`: what did the operator say, what would be right, and what changes while we run?"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from msgspec import structs
from pydantic import BaseModel, Field

from mcpproxy.api.changes import change, document, unmasked
from mcpproxy.api.envelope import Ok, bad_field, ok
from mcpproxy.api.schema import json_body
from mcpproxy.api.services import Rooms, Services
from mcpproxy.config.changes import RESTART, Changes, compare
from mcpproxy.config.errors import ConfigError, member, nearest
from mcpproxy.config.load import parse
from mcpproxy.config.mask import masked, unmask
from mcpproxy.config.models import plain
from mcpproxy.config.write import merge_settings

router = APIRouter(prefix="/config", tags=["config"])

Body = Annotated[dict[str, Any], Depends(document)]


class ConfigView(BaseModel):
    """The configuration in force, secrets hidden."""

    config: dict[str, Any]
    path: str
    restart_keys: list[str] = Field(description="The keys that take effect at the next start only")
    warnings: list[str]


class ConfigChange(ConfigView):
    """What was changed; `restart_required` names what of it waits for the next start."""

    changed: list[str]
    restart_required: list[str]


class ConfigProblem(BaseModel):
    """One thing that keeps a configuration from loading."""

    path: str
    message: str
    allowed: str
    nearest: str | None


class ConfigCheck(BaseModel):
    """Whether a configuration would load."""

    valid: bool
    problems: list[ConfigProblem]
    warnings: list[str]
    changed: list[str] = Field(description="What would change")
    restart_required: list[str]


def _view(rooms: Services) -> dict[str, Any]:
    loaded = rooms.loaded()
    return {
        "config": masked(loaded.config),
        "path": str(loaded.path),
        "restart_keys": sorted(RESTART),
        "warnings": list(loaded.warnings),
    }


def _names(changes: Changes) -> list[str]:
    servers = (*changes.added, *changes.removed, *(after for _, after in changes.changed))
    return [*changes.settings, *(f"mcpServers.{server.name}" for server in servers)]


@router.get("", response_model=Ok[ConfigView])
async def get_config(request: Request, rooms: Rooms) -> dict[str, Any]:
    """The configuration in force, secrets hidden."""
    return ok(request, _view(rooms))


@router.patch(
    "",
    response_model=Ok[ConfigChange],
    openapi_extra=json_body(
        None,
        "The settings to change; blocks are merged key by key, null takes a key out, *** leaves a secret as it is",
        {"output_validation": {"mode": "strict"}, "tools_limit": 20},
    ),
)
async def change_config(request: Request, body: Body, rooms: Rooms) -> dict[str, Any]:
    """Change settings in the file and in force. Servers have routes of their own."""
    if "mcpServers" in body:
        raise bad_field("mcpServers", "servers are changed at /api/v1/servers")
    config = rooms.loaded().config
    _check_known(body, masked(config))
    patch = unmasked(body, plain(config), masked(config))
    changes = await change(request, rooms, lambda content: merge_settings(content, patch))
    return ok(request, {**_view(rooms), "changed": list(changes.settings), "restart_required": list(changes.restart)})


def _check_known(patch: dict[str, Any], known: dict[str, Any], path: str = "") -> None:
    """Refuse a key that would change nothing, though the file may hold such keys; null may take one out of it."""
    for key, value in patch.items():
        if key not in known and value is not None:
            guess = nearest(key, list(known))
            advice = f"; did you mean {guess!r}?" if guess is not None else ""
            raise bad_field(member(path, key), f"there is no such key{advice}", sorted(known))
        if isinstance(value, dict) and isinstance(known.get(key), dict):
            _check_known(value, known[key], member(path, key))


@router.post(
    "/validate",
    response_model=Ok[ConfigCheck],
    openapi_extra=json_body(None, "A whole configuration, as it would stand in the file", {"tools_limit": 20}),
)
async def validate_config(request: Request, body: Body, rooms: Rooms) -> dict[str, Any]:
    """Say whether a configuration would load, what is wrong with it, and what it would change. Nothing is written."""
    config = rooms.loaded().config
    problems: list[ConfigProblem] = []
    changes = Changes()
    try:
        new, warnings = parse(unmask(body, plain(config), masked(config)))
        changes = compare(config, structs.replace(new, api_key=new.api_key or config.api_key))
    except ConfigError as error:
        warnings = error.warnings
        problems = [
            ConfigProblem(path=found.path, message=found.what, allowed=found.allowed, nearest=found.nearest)
            for found in error.problems
        ]
    return ok(
        request,
        ConfigCheck(
            valid=not problems,
            problems=problems,
            warnings=list(warnings),
            changed=_names(changes),
            restart_required=list(changes.restart),
        ),
    )
