"""Is a connected server still what it was? Its tools are listed again when they change, and a silent one is pinged."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcpproxy.catalog.listing import Listing, read_tools
from mcpproxy.wire.errors import CallTimeout, ChannelClosed, SessionExpired, Unauthorized, WireError

if TYPE_CHECKING:
    from mcpproxy.upstream.connection import Connection
    from mcpproxy.upstream.log import ServerLog

log = logging.getLogger(__name__)

PING_EVERY = 30.0
PING_PATIENCE = 10.0
RELIST_PAUSE = 0.25
LONGEST_RELIST_PAUSE = 30.0


class Watch:
    """The watch over one server, from one connection to the next."""

    def __init__(
        self, name: str, identity: str, server_log: ServerLog, on_listing: Callable[[Listing], Awaitable[None]]
    ) -> None:
        self._name = name
        self._identity = identity
        self._log = server_log
        self._on_listing = on_listing
        self._relist = asyncio.Event()

    def list_soon(self) -> None:
        """Have the tools listed again: something may have changed."""
        self._relist.set()

    async def list(self, connection: Connection, patience: float) -> None:
        """Ask for the tools and hand them to the house."""
        self._relist.clear()
        definitions = await connection.list_tools(patience)
        tools, problems = await asyncio.to_thread(read_tools, self._name, definitions)
        for problem in problems[:20]:
            self._log.note(problem)
            log.warning("%s", problem)
        await self._on_listing(
            Listing(
                server=self._name,
                identity=self._identity,
                tools=tools,
                listed_at=time.time(),
                instructions=connection.instructions,
                protocol_version=connection.protocol_version,
                server_version=connection.server_version,
            )
        )

    async def keep(self, connection: Connection, patience: Callable[[], float]) -> None:
        """Keep the list fresh and the server honest, until the connection ends."""
        closed = connection.channel.closed
        pause = RELIST_PAUSE
        listed = 0.0
        while True:
            relist = asyncio.ensure_future(self._relist.wait())
            news: set[asyncio.Future[Any]] = {relist, closed}
            try:
                await asyncio.wait(news, timeout=PING_EVERY, return_when=asyncio.FIRST_COMPLETED)
            finally:
                relist.cancel()
            if closed.done():
                raise ChannelClosed(closed.result())
            if self._relist.is_set():
                # Changes come in bursts, and one list serves them all; a server that never rests is asked ever less.
                steady = time.monotonic() - listed > 4 * pause
                pause = RELIST_PAUSE if steady else min(2 * pause, LONGEST_RELIST_PAUSE)
                await asyncio.wait({closed}, timeout=pause)
                await self._list_again(connection, patience())
                listed = time.monotonic()
            elif connection.channel.in_flight == 0:
                await self._check(connection)

    async def _list_again(self, connection: Connection, patience: float) -> None:
        try:
            await self.list(connection, patience)
        except WireError as error:
            fatal = isinstance(error, Unauthorized | SessionExpired) or connection.channel.closed.done()
            if fatal or connection.channel.in_flight == 0:
                raise
            # It holds calls that may yet end well.
            self._log.note(f"its tools could not be listed again: {error}")
            self._relist.set()

    async def _check(self, connection: Connection) -> None:
        """A server that holds its calls is busy; one that is idle and does not answer is gone."""
        try:
            await connection.ping(PING_PATIENCE)
        except CallTimeout:
            if connection.channel.in_flight == 0:
                raise ChannelClosed(f"it did not answer a ping within {PING_PATIENCE:g} s") from None
