"""What may an agent that holds the API key do to servers? Look, add, switch; never approve.

What an agent adds starts in quarantine, and lifting that, like approving a tool, is a person's decision, made by
command line, REST or dashboard.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from mcpproxy.agent.arguments import BadArguments, read_own
from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.mask import masked
from mcpproxy.config.write import remove_server, set_server
from mcpproxy.policy.access import unknown_server
from mcpproxy.upstream.server import State

if TYPE_CHECKING:
    from mcpproxy.calls.house import House
    from mcpproxy.policy.verdict import Refusal
    from mcpproxy.upstream.server import Upstream

ChangeConfig = Callable[[Callable[[dict[str, Any]], None]], Awaitable[None]]

_MAX_LINES = 200


class ServersArguments(Struct, forbid_unknown_fields=True):
    """What upstream_servers takes."""

    operation: Literal["list", "add", "remove", "enable", "disable", "restart", "logs"]
    name: str | None = None
    server: dict[str, Any] | None = None


class QuarantineArguments(Struct, forbid_unknown_fields=True):
    """What quarantine_security takes."""

    operation: Literal["list", "quarantine"]
    name: str | None = None


async def upstream_servers(house: House, change: ChangeConfig, arguments: bytes) -> dict[str, Any] | Refusal:
    """List the servers, or do something to one of them."""
    asked = read_own(arguments, ServersArguments)
    if asked.operation == "list":
        return {"servers": [_shown(house, upstream) for upstream in house.pool]}
    if asked.operation == "add":
        return await _add(house, change, asked)
    upstream = house.pool.get(_named(asked.name))
    if upstream is None:
        return unknown_server(_named(asked.name))
    match asked.operation:
        case "logs":
            return {"name": upstream.name, "lines": upstream.log.lines[-_MAX_LINES:]}
        case "restart":
            await upstream.restart()
        case "remove":
            await _apply(change, lambda document: _remove(document, upstream.name))
            return {"name": upstream.name, "removed": True}
        case _:
            server = structs.replace(upstream.server, enabled=asked.operation == "enable")
            await _apply(change, lambda document: set_server(document, server))
    return _state(house, upstream.name)


async def quarantine_security(house: House, change: ChangeConfig, arguments: bytes) -> dict[str, Any] | Refusal:
    """List what waits for a person, or put a server into quarantine."""
    asked = read_own(arguments, QuarantineArguments)
    if asked.operation == "list":
        held = [upstream.name for upstream in house.pool if upstream.state is State.QUARANTINED]
        return {"quarantined": held, "approve_with": "mcpproxy upstream approve NAME"}
    upstream = house.pool.get(_named(asked.name))
    if upstream is None:
        return unknown_server(_named(asked.name))
    server = structs.replace(upstream.server, quarantined=True)
    await _apply(change, lambda document: set_server(document, server))
    return _state(house, upstream.name)


async def _add(house: House, change: ChangeConfig, asked: ServersArguments) -> dict[str, Any]:
    if asked.server is None:
        raise BadArguments('server is required: give its entry, such as {"name": …, "command": …} or a url.')
    entry = {**asked.server, **({"name": asked.name} if asked.name is not None else {})}
    try:
        server = parse({"mcpServers": [entry]})[0].servers[0]
    except ConfigError as error:
        raise BadArguments(str(error)) from None
    if house.pool.get(server.name) is not None:
        raise BadArguments(f"There is a server named {server.name!r} already.")
    held = structs.replace(server, quarantined=True)
    await _apply(change, lambda document: set_server(document, held))
    return _state(house, server.name)


async def _apply(change: ChangeConfig, mutate: Callable[[dict[str, Any]], None]) -> None:
    try:
        await change(mutate)
    except (ConfigError, OSError) as error:
        raise BadArguments(f"The configuration could not be changed: {error}") from None


def _remove(document: dict[str, Any], name: str) -> None:
    if not remove_server(document, name):
        raise BadArguments(f"{name!r} does not stand in the configuration file.")


def _named(name: str | None) -> str:
    if not name:
        raise BadArguments("name is required for this operation.")
    return name


def _state(house: House, name: str) -> dict[str, Any]:
    upstream = house.pool.get(name)
    return {"name": name, "state": str(upstream.state) if upstream is not None else "removed"}


def _shown(house: House, upstream: Upstream) -> dict[str, Any]:
    listing = house.catalog.snapshot.listings.get(upstream.name)
    return {
        "name": upstream.name,
        "state": str(upstream.state),
        "reason": upstream.reason,
        "tools": len(listing.tools) if listing is not None else 0,
        "config": masked(upstream.server),
    }
