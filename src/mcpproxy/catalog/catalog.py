"""Which tools are there now? One immutable snapshot, swapped whole: a reader never sees half a list."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct

from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.store import ListingStore
from mcpproxy.catalog.tool import Tool

log = logging.getLogger(__name__)


class Snapshot(Struct, frozen=True):
    """Every known tool at one moment."""

    listings: Mapping[str, Listing] = MappingProxyType({})
    tools: Mapping[str, Tool] = MappingProxyType({})

    def find(self, tool_id: str) -> Tool | None:
        """The tool of a `server:tool` name; a tool's own name may hold colons, a server's never does."""
        server, _, name = tool_id.partition(":")
        listing = self.listings.get(server)
        return listing.tools.get(name) if listing is not None else None


class Catalog:
    """The current snapshot, kept in step with what servers list and with what is on disk."""

    def __init__(self, store: ListingStore, show: Callable[[Listing], Listing] = lambda listing: listing) -> None:
        self._store = store
        self._show = show
        """What of a list the operator wants to be seen; all of it is kept on disk."""
        self._snapshot = Snapshot()
        self._saved: dict[str, Listing] = {}
        self._writing = asyncio.Lock()
        self._watchers: list[Callable[[Listing | None, str], None]] = []

    @property
    def snapshot(self) -> Snapshot:
        """What is there now. Hold on to it for as long as one answer takes."""
        return self._snapshot

    def watch(self, watcher: Callable[[Listing | None, str], None]) -> None:
        """Call with a server's new listing and its name (None for a server that is gone) after every swap."""
        self._watchers.append(watcher)

    async def restore(self, identities: Mapping[str, str]) -> None:
        """Take up the last known lists of the configured servers, marked stale, before any of them is reached."""
        stored = await asyncio.to_thread(self._store.load)
        for listing in stored:
            self._saved[listing.server] = listing
            if identities.get(listing.server) == listing.identity:
                self._swap(listing.server, listing)

    async def put(self, listing: Listing) -> None:
        """A server listed its tools."""
        self._swap(listing.server, listing)
        saved = self._saved.get(listing.server)
        if saved is None or not _same(saved, listing):
            await self._save(listing)

    def mark_stale(self, server: str) -> None:
        """The server is away; its last known tools stay, marked so."""
        listing = self._snapshot.listings.get(server)
        if listing is not None and not listing.stale:
            self._swap(server, msgspec.structs.replace(listing, stale=True))

    def drop(self, server: str) -> None:
        """The operator took the server away, or off; what is on disk stays for when it comes back."""
        if server in self._snapshot.listings:
            self._swap(server, None)

    def _swap(self, server: str, listing: Listing | None) -> None:
        listings = {name: kept for name, kept in self._snapshot.listings.items() if name != server}
        if listing is not None:
            listing = listings[server] = self._show(listing)
        tools = {tool.id: tool for kept in listings.values() for tool in kept.tools.values()}
        self._snapshot = Snapshot(MappingProxyType(listings), MappingProxyType(tools))
        for watcher in self._watchers:
            watcher(listing, server)

    async def _save(self, listing: Listing) -> None:
        async with self._writing:
            try:
                await asyncio.to_thread(self._store.save, listing)
                self._saved[listing.server] = listing
            except Exception as error:  # the list in memory is good; only its survival is at risk
                log.warning("the tools of %r could not be saved: %s", listing.server, error)


def _same(one: Listing, other: Listing) -> bool:
    """Whether nothing but the time of listing differs."""
    return msgspec.structs.replace(one, listed_at=0, stale=False) == msgspec.structs.replace(
        other, listed_at=0, stale=False
    )
