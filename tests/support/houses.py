"""A pool of servers with the rest of the house around it: a real catalog on a real database."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from tests.support.children import TIMEOUT, until

from mcpproxy.catalog.catalog import Catalog
from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.store import ListingStore
from mcpproxy.catalog.tool import Tool
from mcpproxy.config.models import Config, Server
from mcpproxy.storage.engine import open_storage
from mcpproxy.upstream.pool import Pool
from mcpproxy.upstream.server import CannotConnect, Login, State, Surroundings, Upstream, server_identity
from mcpproxy.wire.reaper import Reaper
from mcpproxy.wire.stdio import StdioChannel


class House:
    """What happens to the servers of one pool."""

    def __init__(self, pool: Pool, catalog: Catalog) -> None:
        self.pool = pool
        self.catalog = catalog
        self.states: list[tuple[str, State, str]] = []
        self.listings: list[Listing] = []
        self.outages: list[tuple[str, list[str], bool]] = []
        """Which servers went away; their tools in the catalog then, and whether those were stale."""
        self.logins: dict[str, Login] = {}
        self.missing: set[str] = set()
        """Servers whose secrets cannot be found."""

    def server(self, name: str) -> Upstream:
        """The server of that name."""
        upstream = self.pool.get(name)
        assert upstream is not None
        return upstream

    async def ready(self, *names: str) -> None:
        """Wait until these, or all, are ready."""
        for upstream in [self.server(name) for name in names] or list(self.pool):
            await upstream.ready(TIMEOUT)

    async def state(self, name: str, state: State) -> str:
        """Wait until a server is in a state; its reason."""
        upstream = self.server(name)
        await until(lambda: upstream.state is state, f"{name} is {state} (it is {upstream.state}: {upstream.reason})")
        return upstream.reason

    async def call(self, server: str, tool: str, *, timeout: float = TIMEOUT, **arguments: Any) -> Any:
        """Call a tool, listed or not, and decode its structured content."""
        raw = await self.server(server).call_tool(
            Tool(server=server, name=tool), json.dumps(arguments).encode(), timeout=timeout, max_timeout=timeout
        )
        return json.loads(raw)["structuredContent"]

    def pid(self, name: str) -> int:
        """The process of a stdio server."""
        connection = self.server(name).connection
        assert connection is not None and isinstance(connection.channel, StdioChannel)
        return connection.channel.pid

    def tools(self, server: str) -> list[str]:
        """The names of a server's tools in the catalog."""
        listing = self.catalog.snapshot.listings.get(server)
        return list(listing.tools) if listing is not None else []

    def stale(self, server: str) -> bool:
        """Whether a server's tools are marked stale."""
        return self.catalog.snapshot.listings[server].stale

    def states_of(self, server: str) -> list[str]:
        """Every state that a server was in, in order."""
        return [state.value for name, state, _ in self.states if name == server]


@contextlib.asynccontextmanager
async def house(
    *servers: Server,
    home: Path | None = None,
    slots: int = 8,
    config: Config | None = None,
    prepare: Callable[[House], None] | None = None,
) -> AsyncIterator[House]:
    """Hold these servers for as long as the block lasts; `home` keeps what they listed for the next time."""
    settings = config or Config()
    with contextlib.ExitStack() as stack:
        folder = home or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        storage = open_storage("sqlite", folder)
        stack.callback(storage.close)
        reaper = Reaper()
        stack.callback(reaper.stop)
        catalog = Catalog(ListingStore(storage))

        async def on_listing(listing: Listing) -> None:
            built.listings.append(listing)
            await catalog.put(listing)

        def on_away(server: str) -> None:
            catalog.mark_stale(server)
            known = catalog.snapshot.listings.get(server)
            built.outages.append((server, built.tools(server), known is not None and known.stale))

        async def expand(server: Server) -> Server:
            if server.name in built.missing:
                raise CannotConnect("the secret ${env:NOT_THERE} is not set")
            return server

        around = Surroundings(
            settings=lambda: settings,
            expand=expand,
            reaper=reaper,
            slots=asyncio.Semaphore(slots),
            login=lambda server: built.logins.get(server.name),
            on_listing=on_listing,
            on_away=on_away,
            on_state=lambda upstream, before: built.states.append((upstream.name, upstream.state, upstream.reason)),
        )
        built = House(Pool(around, folder, lambda text: text.replace("hunter2", "***")), catalog)
        if prepare is not None:
            prepare(built)
        await catalog.restore({server.name: server_identity(server) for server in servers})
        try:
            await built.pool.apply(servers)
            yield built
        finally:
            await built.pool.stop()
