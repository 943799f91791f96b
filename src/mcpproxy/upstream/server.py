"""Is this server alive? One server's life: connect, list, stay, break, wait, try again, for ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Struct

from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.tool import Tool
from mcpproxy.config.models import Config, Server
from mcpproxy.upstream.connection import Connection
from mcpproxy.upstream.handshake import Era, Incompatible, Link, connect
from mcpproxy.upstream.log import ServerLog
from mcpproxy.upstream.watch import Watch
from mcpproxy.wire.channel import OnProgress
from mcpproxy.wire.credentials import Credentials
from mcpproxy.wire.errors import ChannelClosed, SessionExpired, Unauthorized, WireError
from mcpproxy.wire.reaper import Reaper

log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
STEADY_AFTER = 30.0
"""A server that stayed up this long starts again at the first pause."""
HANDSHAKE_PATIENCE = 30.0
"""A handshake may take this long even where calls may not: many servers install themselves first."""
SLOT_PATIENCE = 10.0
"""A server that takes longer to start makes room for the next one."""
_EAGER_EVERY = 1.0


class State(StrEnum):
    """Where a server stands."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    READY = "ready"
    NEEDS_LOGIN = "needs_login"
    BACKING_OFF = "backing_off"
    DISABLED = "disabled"
    QUARANTINED = "quarantined"
    FAILED = "failed"


class NotReady(Exception):
    """The server cannot take a call now, and why."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


class CannotConnect(Exception):
    """The server cannot be reached as it is configured; trying again would not help."""


class Login(Credentials, Protocol):
    """Credentials that a person may have to get first."""

    async def login_link(self) -> str | None:
        """A link for a person to open, where that is what is missing."""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the rest of the house lends to every server."""

    settings: Callable[[], Config]
    expand: Callable[[Server], Awaitable[Server]]
    """Fills in the secrets; raises CannotConnect where one is missing."""
    reaper: Reaper
    slots: asyncio.Semaphore
    """How many servers may be starting at once."""
    login: Callable[[Server], Login | None]
    on_listing: Callable[[Listing], Awaitable[None]]
    on_away: Callable[[str], None]
    on_state: Callable[[Upstream, State], None]


class Upstream:
    """One configured server."""

    def __init__(self, server: Server, around: Surroundings, server_log: ServerLog) -> None:
        self.server = server
        self.log = server_log
        self.state = State.DISCONNECTED
        self.reason = ""
        self.since = time.time()
        self.retry_at: float | None = None
        self.login_link: str | None = None
        self._around = around
        self._connection: Connection | None = None
        self._era = Era()
        self._failures = 0
        self._was_ready = False
        self._eager_at = 0.0
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._watch = Watch(server.name, server_identity(server), server_log, around.on_listing)
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def protocol(self) -> str | None:
        """How it is spoken to, as far as that is known."""
        if self._connection is not None:
            return self._connection.channel.kind
        return self.server.protocol or ("stdio" if self.server.command is not None else self._era.protocol)

    @property
    def identity(self) -> str:
        """What the server is: its command line or URL as configured, secrets unexpanded."""
        return server_identity(self.server)

    @property
    def connection(self) -> Connection | None:
        """The live connection, where there is one."""
        return self._connection

    # Life.

    def start(self) -> None:
        """Begin to live, unless the operator said otherwise."""
        if not self.server.enabled:
            self._set(State.DISABLED, "disabled in the configuration")
        elif self.server.quarantined:
            self._set(State.QUARANTINED, "quarantined until an operator approves it")
        elif self._task is None:
            self._task = asyncio.create_task(self._live(), name=f"upstream {self.name}")

    async def stop(self) -> None:
        """End the connection and everything it holds."""
        await self._end()
        if self.state not in (State.DISABLED, State.QUARANTINED):
            self._set(State.DISCONNECTED, "stopped")
        self.log.close()

    async def restart(self) -> None:
        """Drop the connection and make a new one at once."""
        await self._end()
        self._failures = 0
        self.start()

    async def _end(self) -> None:
        task, self._task = self._task, None
        while task is not None and not task.done():
            task.cancel()  # again and again: somewhere below a cancellation may be lost to a fault of the same moment
            await asyncio.wait({task}, timeout=5)

    def wake(self) -> None:
        """Try again now rather than after the pause."""
        self._wake.set()

    async def _live(self) -> None:
        while True:
            started = time.monotonic()
            guess = msgspec.structs.replace(self._era)
            try:
                state, reason = await self._attempt()
            except Exception as error:  # a fault of ours costs this attempt, never the server's whole life
                log.exception("server %r: unexpected fault", self.name)
                state, reason = State.BACKING_OFF, f"{type(error).__name__}: {error}"
            if not self._was_ready and guess != Era():
                self._era = Era()  # what was learnt may no longer hold: find out again
            if time.monotonic() - started > STEADY_AFTER:
                self._failures = 0
            self._failures += 1
            self.log.note(reason)
            log.log(_level(state, self._failures), "server %r: %s", self.name, reason)
            await self._pause(state, reason)

    async def _attempt(self) -> tuple[State, str]:
        """Connect and stay until the connection ends; returns what to be next, and why."""
        self._set(State.CONNECTING, "")
        self._was_ready = False
        login: Login | None = None
        try:
            server = await self._around.expand(self.server)
            login = self._around.login(server)
            await self._stay(self._link(server, login))
        except Unauthorized as error:
            self.login_link = await login.login_link() if login is not None else None
            return State.NEEDS_LOGIN, f"{error}; log in with: mcpproxy upstream login {self.name}"
        except (CannotConnect, Incompatible) as error:
            return State.FAILED, str(error)
        except ChannelClosed as error:
            return State.BACKING_OFF, self._with_last_words(str(error))
        except TimeoutError:
            return State.BACKING_OFF, self._with_last_words(f"no handshake within {self._handshake_patience():g} s")
        except (WireError, OSError) as error:
            return State.BACKING_OFF, str(error) or type(error).__name__
        return State.BACKING_OFF, "the connection ended"

    def _with_last_words(self, reason: str) -> str:
        last = self.log.last_error
        return f"{reason}; its last words: {last[:300]}" if last else reason

    def _patience(self) -> float:
        return self.server.call_tool_timeout or self._around.settings().call_tool_timeout

    def _handshake_patience(self) -> float:
        return max(self._patience(), HANDSHAKE_PATIENCE)

    def _link(self, server: Server, login: Login | None) -> Link:
        return Link(
            server=server,
            max_result_bytes=self._around.settings().max_result_bytes,
            connect_timeout=self._handshake_patience(),
            on_spawn=self.log.begin,
            on_stderr=self.log.stderr,
            reaper=self._around.reaper,
            credentials=login,
            on_tools_changed=self._watch.list_soon,
            on_message=self.log.note,
        )

    async def _stay(self, link: Link) -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with _held(self._around.slots, SLOT_PATIENCE):
                connection = await stack.enter_async_context(connect(link, self._era))
                await self._watch.list(connection, self._patience())
            self._connection = connection
            self._was_ready = True
            try:
                self._set(State.READY, "")
                await self._watch.keep(connection, self._patience)
            finally:
                self._connection = None
                self._around.on_away(self.name)

    async def _pause(self, state: State, reason: str) -> None:
        growth = 2 ** min(self._failures - 1, 30)  # past that the number itself would not fit
        pause = min(FIRST_PAUSE * growth, LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311
        self._wake.clear()
        self.retry_at = None if state in (State.NEEDS_LOGIN, State.FAILED) else time.time() + pause
        self._set(state, reason)
        try:
            async with asyncio.timeout(None if self.retry_at is None else pause):
                await self._wake.wait()
        except TimeoutError:
            pass
        self.retry_at = None

    def _set(self, state: State, reason: str) -> None:
        if (state, reason) == (self.state, self.reason):
            return
        before, self.state, self.reason, self.since = self.state, state, reason, time.time()
        if state is not State.NEEDS_LOGIN:
            self.login_link = None
        self._changed.set()
        self._changed = asyncio.Event()
        try:
            self._around.on_state(self, before)
        except Exception:  # whoever listens must not end a server's life
            log.exception("server %r: its change to %s could not be told", self.name, state)

    # Calls.

    async def ready(self, timeout: float) -> Connection:
        """The live connection; waits while the server connects, and wakes it where it only waits for another try."""
        deadline = asyncio.get_running_loop().time() + timeout
        tried = False
        while (connection := self._usable()) is None:
            if self.state is State.CONNECTING:
                tried = True
            elif self.state is State.BACKING_OFF:
                if tried or not self._hurry():
                    raise NotReady(self.state, self.reason)
            elif self.state not in (State.READY, State.DISCONNECTED) or self._task is None:
                raise NotReady(self.state, self.reason or "not started")
            changed = self._changed
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                raise NotReady(self.state, f"still connecting after {timeout:g} s") from None
        return connection

    def _usable(self) -> Connection | None:
        connection = self._connection
        return None if connection is None or connection.channel.closed.done() else connection

    def _hurry(self) -> bool:
        """Have the next try made now, unless that has just been done in vain."""
        if self._wake.is_set():
            return True  # another call did
        now = time.monotonic()
        if now - self._eager_at <= _EAGER_EVERY:
            return False
        self._eager_at = now
        self.wake()
        return True

    async def call_tool(
        self,
        tool: Tool,
        arguments: bytes,
        *,
        timeout: float,
        max_timeout: float,
        on_progress: OnProgress | None = None,
        on_connected: Callable[[], None] = lambda: None,
        trace: Mapping[str, str] | None = None,
    ) -> bytes:
        """Call a tool; a server that is still connecting is waited for within the same timeout.

        `on_connected` hears of a connection that was made meanwhile, before the call goes out over it, and may raise:
        the server has listed its tools anew. `trace` names the span that the call is part of.
        """
        deadline = time.monotonic() + timeout
        connection = self._usable()
        if connection is None:
            connection = await self.ready(timeout)
            on_connected()
        connection.channel.max_result_bytes = self._around.settings().max_result_bytes  # it may be another by now
        try:
            return await connection.call_tool(
                tool, arguments, timeout=_left(deadline), max_timeout=max_timeout, on_progress=on_progress, trace=trace
            )
        except SessionExpired as error:
            # The server said it does not know us, so it did nothing: a new handshake, then the same call once more.
            connection.channel.fail_all(str(error))
            connection = await self.ready(_left(deadline))
            on_connected()
            return await connection.call_tool(
                tool, arguments, timeout=_left(deadline), max_timeout=max_timeout, on_progress=on_progress, trace=trace
            )
        except (Unauthorized, ChannelClosed):
            self._watch.list_soon()  # was it this call alone, or is it all of the server? The next list will say.
            raise


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


@contextlib.asynccontextmanager
async def _held(slots: asyncio.Semaphore, longest: float) -> AsyncIterator[None]:
    """A slot for the length of the block, but no longer than that: servers that hang must not keep others out."""
    await slots.acquire()
    timer = asyncio.get_running_loop().call_later(longest, slots.release)
    try:
        yield
    finally:
        if timer.when() > asyncio.get_running_loop().time():
            timer.cancel()
            slots.release()


def server_identity(server: Server) -> str:
    """A server's unexpanded command line or URL: with its name, what a tool list belongs to."""
    if server.command is not None:
        return msgspec.json.encode([server.command, *server.args]).decode()
    return server.url or ""


def _level(state: State, failures: int) -> int:
    # The first fault is news, a hundred of the same are noise.
    return logging.WARNING if failures <= 3 or state in (State.FAILED, State.NEEDS_LOGIN) else logging.DEBUG
