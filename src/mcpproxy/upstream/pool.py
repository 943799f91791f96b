"""Which servers are held? All configured ones; a change to one touches that one alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mcpproxy.upstream.log import ServerLog, log_path
from mcpproxy.upstream.server import State, Surroundings, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcpproxy.config.models import Server


class Pool:
    """Every configured server, by name."""

    def __init__(self, around: Surroundings, data_dir: Path, mask: Callable[[str], str]) -> None:
        self._around = around
        self._data_dir = data_dir
        self._mask = mask
        self._servers: dict[str, Upstream] = {}
        self._changing = asyncio.Lock()

    def __iter__(self) -> Iterator[Upstream]:
        return iter(tuple(self._servers.values()))

    def get(self, name: str) -> Upstream | None:
        """The server of that name."""
        return self._servers.get(name)

    @property
    def settled(self) -> bool:
        """Whether every server has been tried at least once."""
        return all(upstream.state not in (State.CONNECTING, State.DISCONNECTED) for upstream in self)

    async def apply(self, servers: Iterable[Server]) -> None:
        """Hold exactly these: start what is new, stop what is gone, replace what changed, leave the rest alone."""
        async with self._changing:
            wanted = {server.name: server for server in servers}
            ending = [upstream for name, upstream in self._servers.items() if wanted.get(name) != upstream.server]
            await asyncio.gather(*(upstream.stop() for upstream in ending))
            for upstream in ending:  # until here a call found it, stopped, rather than nothing of that name
                del self._servers[upstream.name]
            for name, server in wanted.items():
                if name not in self._servers:
                    server_log = ServerLog(log_path(self._data_dir, name), self._mask)
                    self._servers[name] = Upstream(server, self._around, server_log)
                    self._servers[name].start()
            self._servers = {name: self._servers[name] for name in wanted}

    async def stop(self) -> None:
        """End every server."""
        async with self._changing:
            await asyncio.gather(*(upstream.stop() for upstream in self._servers.values()))
            self._servers.clear()
