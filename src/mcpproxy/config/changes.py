"""What is different between two configurations, and what of it needs a restart?"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from mcpproxy.config.models import Config, Server

RESTART: Final = frozenset({"listen", "storage"})
"""The keys that a running process cannot change."""


class Changes(Struct, frozen=True, kw_only=True):
    """Each server on its own, and the settings by their key."""

    added: tuple[Server, ...] = ()
    removed: tuple[Server, ...] = ()
    changed: tuple[tuple[Server, Server], ...] = ()
    """Before and after, for servers in both whose entry differs."""
    settings: tuple[str, ...] = ()
    """Changed keys outside mcpServers, such as `output_validation.mode`."""

    @property
    def restart(self) -> tuple[str, ...]:
        """The changed keys that take effect at the next start only."""
        return tuple(key for key in self.settings if key in RESTART)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.settings)


def compare(old: Config, new: Config) -> Changes:
    """What has to be done to get from the old configuration to the new."""
    before = {server.name: server for server in old.servers}
    after = {server.name: server for server in new.servers}
    return Changes(
        added=tuple(server for name, server in after.items() if name not in before),
        removed=tuple(server for name, server in before.items() if name not in after),
        changed=tuple(
            (before[name], server) for name, server in after.items() if name in before and before[name] != server
        ),
        settings=tuple(_different(old, new, "")),
    )


def _different(old: Struct, new: Struct, prefix: str) -> list[str]:
    keys: list[str] = []
    for name in old.__struct_fields__:
        one: Any = getattr(old, name)
        other: Any = getattr(new, name)
        if one == other or name == "servers":
            continue
        keys += _different(one, other, f"{prefix}{name}.") if isinstance(one, Struct) else [prefix + name]
    return keys
