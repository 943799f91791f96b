"""How does it all fit together? Config in, running App out. The only module that knows every room."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

import mcpproxy
from mcpproxy.access.identify import Gate
from mcpproxy.agent.face import AgentFace
from mcpproxy.asgi import respond
from mcpproxy.catalog.catalog import Catalog
from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.store import ListingStore
from mcpproxy.config.load import Loaded
from mcpproxy.config.mask import Masker, secrets_of
from mcpproxy.config.models import Config, Server
from mcpproxy.config.secrets import SecretMissing, expand
from mcpproxy.config.watch import Reload, Watch
from mcpproxy.storage.engine import Storage, open_storage
from mcpproxy.upstream.pool import Pool
from mcpproxy.upstream.server import CannotConnect, Login, State, Surroundings, Upstream, server_identity
from mcpproxy.wire.reaper import Reaper

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from mcpproxy.config.errors import ConfigAccessError, ConfigError

log = logging.getLogger(__name__)

STARTING_AT_ONCE = 8
"""How many servers may be starting at the same moment; more would only make each of them slower."""


class App:
    """A running proxy."""

    def __init__(self, loaded: Loaded, data_dir: Path, masker: Masker, *, extra: tuple[Server, ...] = ()) -> None:
        self.loaded = loaded
        self.data_dir = data_dir
        self.started_at = time.time()
        self.config_error: str | None = None
        self.masker = masker
        self._extra = extra
        self._overrides: dict[str, Any] = {"listen": loaded.config.listen}
        self._reaper = Reaper()
        self.storage: Storage
        self.catalog: Catalog
        self.pool: Pool
        self.agent: AgentFace

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.loaded.config

    @property
    def servers(self) -> tuple[Server, ...]:
        """Every server to hold: the configured ones and the demo, where it is asked for."""
        return (*self.config.servers, *self._extra)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        """Open everything, and close it again in the opposite order."""
        self.masker.learn("config", secrets_of(self.config))
        async with contextlib.AsyncExitStack() as stack:
            self.storage = await asyncio.to_thread(
                open_storage, self.config.storage, self.data_dir, self.config.activity.durability
            )
            stack.callback(self.storage.close)
            self.catalog = Catalog(ListingStore(self.storage))
            await self.catalog.restore({server.name: server_identity(server) for server in self.servers})
            stack.callback(self._reaper.stop)
            self.pool = Pool(self._surroundings(), self.data_dir, self.masker.mask)
            stack.push_async_callback(self.pool.stop)
            gate = Gate(lambda: self.config)
            self.agent = AgentFace(settings=lambda: self.config, catalog=self.catalog, pool=self.pool, gate=gate)
            await stack.enter_async_context(self.agent.running())
            await self.pool.apply(self.servers)
            watch = Watch(self.loaded, self._on_reload, self._on_config_error)
            watching = asyncio.create_task(watch.run())
            stack.push_async_callback(_end, watching)
            yield self

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            settings=lambda: self.config,
            expand=self._expand,
            reaper=self._reaper,
            slots=asyncio.Semaphore(STARTING_AT_ONCE),
            login=self._login,
            on_listing=self._on_listing,
            on_away=self._on_away,
            on_state=self._on_state,
        )

    async def _expand(self, server: Server) -> Server:
        try:
            return await asyncio.to_thread(expand, server, self.masker)
        except SecretMissing as error:
            raise CannotConnect(str(error)) from None

    def _login(self, server: Server) -> Login | None:
        return None

    async def _on_listing(self, listing: Listing) -> None:
        await self.catalog.put(listing)

    def _on_away(self, server: str) -> None:
        self.catalog.mark_stale(server)

    def _on_state(self, upstream: Upstream, before: State) -> None:
        if upstream.state in (State.DISABLED, State.QUARANTINED):
            self.catalog.drop(upstream.name)
        if upstream.state is State.READY:
            log.info("server %r is ready", upstream.name)

    async def _on_reload(self, reload: Reload) -> None:
        new = structs.replace(reload.loaded.config, **self._overrides)
        before, self.loaded = self.config, structs.replace(reload.loaded, config=new)
        self.config_error = None
        self.masker.learn("config", secrets_of(new))
        for warning in reload.loaded.warnings:
            log.warning("%s", warning)
        changed = [*reload.changes.settings, *(server.name for server in reload.changes.added)]
        log.info("the configuration was reloaded%s", f": {', '.join(changed)}" if changed else "")
        for key in reload.changes.restart:
            log.warning("%s takes effect at the next start", key)
        for server in reload.changes.removed:
            self.catalog.drop(server.name)
        await self.pool.apply(self.servers)
        await self.agent.config_changed(before, new)
        logging.getLogger("mcpproxy").setLevel(new.log_level.upper())

    async def _on_config_error(self, error: ConfigError | ConfigAccessError) -> None:
        self.config_error = str(error)
        log.error("the changed configuration does not load and the running one stays in force: %s", error)

    # The HTTP root.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        path = scope["path"]
        if path in ("/mcp", "/mcp/"):
            await self.agent.http(scope, receive, send)
        elif path == "/healthz":
            await respond(send, 200, {"status": "ok", "version": mcpproxy.__version__})
        elif path == "/readyz":
            ready = self.pool.settled
            await respond(send, 200 if ready else 503, {"status": "ready" if ready else "starting"})
        else:
            await respond(send, 404, {"error": f"There is nothing at {path[:200]}; agents connect to /mcp."})


def demo_server() -> Server:
    """The built-in demo upstream."""
    return Server(name="demo", command=sys.executable, args=("-m", "mcpproxy.demo"))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
