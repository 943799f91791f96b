"""How does it all fit together? Config in, running App out. The only module that knows every room."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from msgspec import structs

import mcpproxy
from mcpproxy.access.browser import Browsers
from mcpproxy.access.identify import Gate
from mcpproxy.access.tokens import Token, Tokens
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.retention import Retention
from mcpproxy.agent.face import AgentFace
from mcpproxy.asgi import Headers, Work, respond
from mcpproxy.calls.house import House
from mcpproxy.calls.pipeline import Pipeline
from mcpproxy.catalog.catalog import Catalog
from mcpproxy.catalog.finder import Finder
from mcpproxy.catalog.guard import Guard
from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.store import ListingStore
from mcpproxy.catalog.trust_store import TrustStore
from mcpproxy.catalog.visible import wanted
from mcpproxy.chronicle import Chronicle
from mcpproxy.config.load import Loaded
from mcpproxy.config.mask import Masker, secrets_of
from mcpproxy.config.models import Config, Server
from mcpproxy.config.secrets import SecretMissing, expand
from mcpproxy.config.watch import Reload, Watch
from mcpproxy.config.write import update
from mcpproxy.storage.engine import Storage, open_storage
from mcpproxy.telemetry import Telemetry
from mcpproxy.upstream.oauth import LoginFailed, Logins, page
from mcpproxy.upstream.oauth.callback import PATH as CALLBACK_PATH
from mcpproxy.upstream.pool import Pool
from mcpproxy.upstream.server import CannotConnect, State, Surroundings, Upstream, server_identity
from mcpproxy.wire.reaper import Reaper

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from mcpproxy.api.services import Services
    from mcpproxy.config.errors import ConfigAccessError, ConfigError

log = logging.getLogger(__name__)

DECISIONS_EVERY = 2.0
"""How soon a decision made by another process takes effect, in seconds."""
STARTING_AT_ONCE = 8
"""How many servers may be starting at the same moment; more would only make each of them slower."""


class App:
    """A running proxy."""

    def __init__(
        self,
        loaded: Loaded,
        data_dir: Path,
        masker: Masker,
        *,
        address: str | None = None,
        extra: tuple[Server, ...] = (),
        errand: bool = False,
    ) -> None:
        """With `errand` it lives for one command: nobody searches, and that it came and went is no news."""
        self.loaded = loaded
        self.data_dir = data_dir
        self.started_at = self.loaded_at = time.time()
        self.config_error: str | None = None
        self.masker = masker
        self._address = address
        self._extra = extra
        self._errand = errand
        self._overrides: dict[str, Any] = {"listen": loaded.config.listen}
        self._reaper = Reaper()
        self.storage: Storage
        self.catalog: Catalog
        self.finder: Finder
        self.journal: Journal
        self.chronicle: Chronicle
        self.logins: Logins
        self.pool: Pool
        self.pipeline: Pipeline
        self.agent: AgentFace
        self.tokens: Tokens
        self.browsers = Browsers(lambda: self.config.api_key)
        self.stopping = asyncio.Event()
        """Set by whoever runs us when we are to stop: streams end then."""
        self._telemetry: Telemetry
        self._gate: Gate
        self._house: House
        self._watch: Watch
        self._api: ASGIApp | None = None
        self._web: ASGIApp | None = None
        self._making_faces = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

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
            guard = Guard(TrustStore(self.storage), self._configured)
            self.catalog = Catalog(ListingStore(self.storage), self._wanted, guard)
            self.finder = Finder(self.data_dir)
            stack.push_async_callback(asyncio.to_thread, self.finder.close)
            if not self._errand:
                self.catalog.watch(self.finder.listed)
            await self.catalog.restore({server.name: server_identity(server) for server in self.servers})
            self.journal = Journal(
                self.storage, self.data_dir, settings=lambda: self.config.activity, mask=self.masker.mask
            )
            await self.journal.start()
            stack.push_async_callback(self.journal.stop)
            retention = Retention(self.storage, self.journal, lambda: self.config.activity)
            stack.push_async_callback(_end, asyncio.create_task(retention.run()))
            self.chronicle = Chronicle(self.journal, errand=self._errand)
            await self.chronicle.start({"listen": self.config.listen, "servers": len(self.servers)})
            stack.push_async_callback(self.chronicle.stop)
            self.logins = Logins(
                self.data_dir,
                redirect_uri=f"{self._address}{CALLBACK_PATH}" if self._address else None,
                on_login=self._on_login,
            )
            stack.push_async_callback(self.logins.close)
            stack.callback(self._reaper.stop)
            self.pool = Pool(self._surroundings(), self.data_dir, self.masker.mask)
            stack.push_async_callback(self.pool.stop)
            self._house = House(
                catalog=self.catalog,
                finder=self.finder,
                pool=self.pool,
                journal=self.journal,
                mask=self.masker.mask,
            )
            stack.push_async_callback(asyncio.to_thread, self._house.apart.close)
            self.pipeline = Pipeline(self._house)
            self._telemetry = Telemetry(self.pipeline)
            await self._telemetry.point_at(self.config.otel_endpoint)
            stack.push_async_callback(self._telemetry.close)
            self.tokens = Tokens(self.storage, self._on_token_gone)
            self._gate = Gate(lambda: self.config, self.tokens)
            self.agent = AgentFace(
                settings=lambda: self.config,
                change_config=self.change_config,
                house=self._house,
                pipeline=self.pipeline,
                gate=self._gate,
            )
            await stack.enter_async_context(self.agent.running())
            await self.tokens.start()
            stack.push_async_callback(self.tokens.stop)
            await self._hold_quarantined()
            await self.pool.apply(self.servers)
            stack.push_async_callback(_end, asyncio.create_task(self._take_up_decisions()))
            self._watch = Watch(self.loaded, self._on_reload, self._on_config_error)
            watching = asyncio.create_task(self._watch.run())
            stack.push_async_callback(_end, watching)
            yield self

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            settings=lambda: self.config,
            expand=self._expand,
            reaper=self._reaper,
            slots=asyncio.Semaphore(STARTING_AT_ONCE),
            login=self.logins.session,
            on_listing=self._on_listing,
            on_away=self._on_away,
            on_state=self._on_state,
        )

    async def _expand(self, server: Server) -> Server:
        try:
            return await asyncio.to_thread(expand, server, self.masker)
        except SecretMissing as error:
            raise CannotConnect(str(error)) from None

    def _on_login(self, name: str) -> None:
        upstream = self.pool.get(name)
        if upstream is not None:
            upstream.wake()

    def _on_token_gone(self, token: Token) -> None:
        task = asyncio.create_task(self.agent.http.close_sessions(token.key))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _configured(self, name: str) -> Server | None:
        return next((server for server in self.servers if server.name == name), None)

    def _wanted(self, listing: Listing) -> Listing:
        server = self._configured(listing.server)
        return wanted(listing, server) if server is not None else listing

    async def _on_listing(self, listing: Listing) -> None:
        self.chronicle.trust_changed(await self.catalog.put(listing))

    async def _hold_quarantined(self) -> None:
        """What is quarantined stays untrusted after it is let out, until somebody approves what it lists."""
        for server in self.servers:
            if server.quarantined:
                changes = await self.catalog.quarantine(
                    server.name, identity=server_identity(server), by="configuration"
                )
                self.chronicle.trust_changed(changes)

    async def _take_up_decisions(self) -> None:
        """Hear of what the command line or another replica decided about tools."""
        while True:
            await asyncio.sleep(DECISIONS_EVERY)
            try:
                await self.catalog.refresh()
            except Exception as error:  # the database may be away for a moment
                log.warning("decisions about tools could not be read: %s", error)

    def _on_away(self, server: str) -> None:
        self.catalog.mark_stale(server)

    def _on_state(self, upstream: Upstream, before: State) -> None:
        self.chronicle.server_changed(upstream, before)
        listing = self.catalog.snapshot.listings.get(upstream.name)
        another = listing is not None and listing.identity != upstream.identity
        if another or upstream.state in (State.DISABLED, State.QUARANTINED):
            self.catalog.drop(upstream.name)
        if upstream.state is State.READY:
            log.info("server %r is ready", upstream.name)

    async def _on_reload(self, reload: Reload) -> None:
        new = structs.replace(reload.loaded.config, **self._overrides)
        before, self.loaded = self.config, structs.replace(reload.loaded, config=new)
        self.config_error = None
        self.loaded_at = time.time()
        self.masker.learn("config", secrets_of(new))
        for warning in reload.loaded.warnings:
            log.warning("%s", warning)
        changes = reload.changes
        touched = (*changes.added, *(server for _, server in changes.changed), *changes.removed)
        changed = [*changes.settings, *(server.name for server in touched)]
        log.info("the configuration was reloaded%s", f": {', '.join(changed)}" if changed else "")
        for key in reload.changes.restart:
            log.warning("%s takes effect at the next start", key)
        self.chronicle.config_reloaded(reload)
        for server in reload.changes.removed:
            self.catalog.drop(server.name)
            self.chronicle.server_configured(server.name, "removed")
        for server in reload.changes.added:
            self.chronicle.server_configured(server.name, "added")
        for _, server in reload.changes.changed:
            self.chronicle.server_configured(server.name, "changed")
        await self._hold_quarantined()
        await self.pool.apply(self.servers)
        await self.agent.config_changed(before, new)
        await self._telemetry.point_at(new.otel_endpoint)
        logging.getLogger("mcpproxy").setLevel(new.log_level.upper())

    async def change_config(self, mutate: Callable[[dict[str, Any]], None]) -> None:
        """Change the file, and return once the change is in force."""
        await asyncio.to_thread(update, self.loaded.path, mutate)
        await self._watch.look()

    async def _on_config_error(self, error: ConfigError | ConfigAccessError) -> None:
        self.config_error = str(error)
        self.chronicle.config_refused(self.config_error)
        log.error("the changed configuration does not load and the running one stays in force: %s", error)

    # The HTTP root.

    def take(self, headers: Headers, body: bytes, *, local: bool) -> Work | None:
        """The work on a whole POST to `/mcp`, where it can be done without the layers below."""
        return self.agent.http.take(headers, body, local=local)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        path = scope["path"]
        if path in ("/mcp", "/mcp/"):
            await self.agent.http(scope, receive, send)
        elif path == "/oauth/callback" or (path == CALLBACK_PATH and scope["method"] == "GET"):
            await self._finish_login(scope, send)
        elif path == "/metrics" or path.startswith("/api/"):
            await (self._api or await self._rest())(scope, receive, send)
        elif path == "/ui" or path.startswith("/ui/") or (path == "/" and scope["method"] == "GET"):
            await (self._web or await self._dashboard())(scope, receive, send)
        elif path == "/healthz":
            await respond(send, 200, {"status": "ok", "version": mcpproxy.__version__})
        elif path == "/readyz":
            ready = self.pool.settled
            await respond(send, 200 if ready else 503, {"status": "ready" if ready else "starting"})
        else:
            await respond(send, 404, {"error": f"There is nothing at {path[:200]}; agents connect to /mcp."})

    async def _rest(self) -> ASGIApp:
        """The REST face, made when it is first asked for: its framework takes longer to import than we to start."""
        async with self._making_faces:
            if self._api is None:
                self._api = await asyncio.to_thread(self._make_rest)
            return self._api

    async def _dashboard(self) -> ASGIApp:
        """The pages, made when they are first asked for, too: what they change they change by the REST face."""
        rest = await self._rest()
        async with self._making_faces:
            if self._web is None:
                self._web = await asyncio.to_thread(self._make_dashboard, rest)
            return self._web

    def _make_rest(self) -> ASGIApp:
        from mcpproxy.api.app import build

        return build(self._services)

    def _make_dashboard(self, rest: ASGIApp) -> ASGIApp:
        from mcpproxy.web.app import build

        return build(self._services, rest)

    @cached_property
    def _services(self) -> Services:
        from mcpproxy.activity.follow import Feed
        from mcpproxy.api.services import Services

        return Services(
            loaded=lambda: self.loaded,
            loaded_at=lambda: self.loaded_at,
            config_error=lambda: self.config_error,
            started_at=self.started_at,
            address=self._address or "",
            data_dir=self.data_dir,
            storage=self.storage,
            house=self._house,
            pipeline=self.pipeline,
            gate=self._gate,
            browsers=self.browsers,
            tokens=self.tokens,
            feed=Feed(self.storage, self.journal),
            sessions=lambda: len(self.agent.http.sessions),
            stopping=self.stopping,
            change_config=self.change_config,
            note_changes=self.chronicle.trust_changed,
            logins=self.logins,
            dispatch=self.agent.dispatch,
        )

    async def _finish_login(self, scope: Scope, send: Send) -> None:
        """A person comes back from an authorization server."""
        failure: str | None = None
        try:
            await self.logins.finish(dict(parse_qsl(scope["query_string"].decode("latin-1"))))
        except LoginFailed as error:
            failure = str(error)
        headers = ((b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store"))
        await respond(send, 200 if failure is None else 400, page(failure).encode(), headers)


def demo_server() -> Server:
    """The built-in demo upstream."""
    return Server(name="demo", command=sys.executable, args=("-m", "mcpproxy.demo"))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
