"""Which tools are there now? One immutable snapshot, swapped whole: a reader never sees half a list."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType

import msgspec
from msgspec import Struct

from mcpproxy.catalog.approval import Waiting, version_of_all
from mcpproxy.catalog.changes import Change
from mcpproxy.catalog.guard import Admitted, Guard, NothingToDecide
from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.store import ListingStore
from mcpproxy.catalog.tool import Tool

log = logging.getLogger(__name__)


class Snapshot(Struct, frozen=True):
    """Every known tool at one moment: what agents may see, and beside it what waits for an operator."""

    listings: Mapping[str, Listing] = MappingProxyType({})
    tools: Mapping[str, Tool] = MappingProxyType({})
    waiting: Mapping[str, Waiting] = MappingProxyType({})
    """By `server:tool`, and by `server:` for a server's instructions. Nothing of it is for agents."""

    def find(self, tool_id: str) -> Tool | None:
        """The tool of a `server:tool` name; a tool's own name may hold colons, a server's never does."""
        server, _, name = tool_id.partition(":")
        listing = self.listings.get(server)
        return listing.tools.get(name) if listing is not None else None

    def waiting_of(self, server: str) -> tuple[Waiting, ...]:
        """What waits of one server."""
        return tuple(waiting for waiting in self.waiting.values() if waiting.server == server)


class VersionChanged(Exception):
    """What was shown is no longer what waits: look again before you decide."""


class Catalog:
    """The current snapshot, kept in step with what servers list and with what is on disk."""

    def __init__(
        self,
        store: ListingStore,
        show: Callable[[Listing], Listing] = lambda listing: listing,
        guard: Guard | None = None,
    ) -> None:
        self._store = store
        self._show = show
        """What of a list the operator wants to be seen; all of it is kept on disk."""
        self._guard = guard
        """What of a list may be seen at all; None where everything may."""
        self._snapshot = Snapshot()
        self._live: dict[str, Listing] = {}
        """What each server listed last, with all that waits."""
        self._admitted: dict[str, Admitted] = {}
        self._deciding: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
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
            identity = identities.get(listing.server)
            if identity is None or not listing.is_of(identity):
                self._saved[listing.server] = listing
                continue
            self._saved[listing.server] = known = msgspec.structs.replace(listing, identity=identity)
            async with self._deciding[listing.server]:
                await self._take(known)

    async def put(self, listing: Listing) -> tuple[Change, ...]:
        """A server listed its tools. Gives what is new about them and should go on record."""
        saved = self._saved.get(listing.server)
        changes: tuple[Change, ...] = ()
        if self._guard is None:
            self._swap(listing.server, Admitted(listing=listing))
        else:
            async with self._deciding[listing.server]:
                changes = await self._show_after(listing, partial(self._guard.admit, listing, saved))
        if saved is None or not _same(saved, listing):
            await self._save(listing)
        return changes

    async def _take(self, listing: Listing) -> None:
        """Show a list that was judged before, in the light of what is decided now."""
        if self._guard is None:
            self._swap(listing.server, Admitted(listing=listing))
        else:
            await self._show_after(listing, partial(self._guard.review, listing))

    async def _show_after(self, live: Listing, judge: Callable[[], Admitted]) -> tuple[Change, ...]:
        """Let the guard judge a list in a thread, then show what may be seen of it."""
        self._live[live.server] = live
        try:
            admitted = await asyncio.to_thread(judge)
        except Exception as error:  # what was approved cannot be read: what is shown already stays, nothing is added
            log.error("the tools of %r could not be held against what was approved: %s", live.server, error)
            return ()
        now = self._live.get(live.server)
        if now is None:  # dropped in the meantime
            self._trusted().leave(live.server)
        else:
            listing = msgspec.structs.replace(admitted.listing, stale=now.stale)
            self._swap(live.server, msgspec.structs.replace(admitted, listing=listing))
        return admitted.changes

    def mark_stale(self, server: str) -> None:
        """The server is away; its last known tools stay, marked so."""
        live, admitted = self._live.get(server), self._admitted.get(server)
        if live is not None:
            self._live[server] = msgspec.structs.replace(live, stale=True)
        if admitted is not None and not admitted.listing.stale:
            listing = msgspec.structs.replace(admitted.listing, stale=True)
            self._swap(server, msgspec.structs.replace(admitted, listing=listing))

    def drop(self, server: str) -> None:
        """The operator took the server away, or off; what is on disk stays for when it comes back."""
        self._live.pop(server, None)
        if self._guard is not None:
            self._guard.leave(server)
        if server in self._admitted:
            self._swap(server, None)

    def _swap(self, server: str, admitted: Admitted | None) -> None:
        kept = {name: other for name, other in self._admitted.items() if name != server}
        if admitted is not None:
            admitted = msgspec.structs.replace(admitted, listing=self._show(admitted.listing))
            kept[server] = admitted
        self._admitted = kept
        self._snapshot = _snapshot(kept.values())
        for watcher in self._watchers:
            watcher(admitted.listing if admitted is not None else None, server)

    # What operators decide. An agent can reach none of these.

    async def approve(self, server: str, tool: str | None, *, version: str, by: str) -> tuple[Change, ...]:
        """Let a version of a tool be used, or of everything that waits (None; the version is then that of all).

        The version is the hash that was shown: what a server puts in its place meanwhile is not approved by it.
        """
        async with self._deciding[server]:
            live, guard = self._decidable(server)
            waiting = self._snapshot.waiting_of(server)
            if tool is None:
                chosen = [one for one in waiting if one.state != "rejected"]
                shown = version_of_all(waiting)
            else:
                chosen = [one for one in waiting if one.tool == tool]
                shown = chosen[0].hash if chosen else ""
            if not chosen:
                raise NothingToDecide(f"Nothing of that name waits for approval on server {server!r}.")
            if shown != version:
                raise VersionChanged(f"What waits on server {server!r} is not what was shown; look at it again.")
            change = await asyncio.to_thread(guard.approve, server, live.identity, chosen, by)
            await self._again(server)
            return (change,)

    async def reject(self, server: str, tool: str, *, version: str, by: str) -> tuple[Change, ...]:
        """Refuse a version that waits. It stays away, and no other is approved without a person."""
        async with self._deciding[server]:
            live, guard = self._decidable(server)
            waiting = next((one for one in self._snapshot.waiting_of(server) if one.tool == tool), None)
            if waiting is None:
                raise NothingToDecide(f"Nothing of that name waits for approval on server {server!r}.")
            if waiting.hash != version:
                raise VersionChanged(f"What waits on server {server!r} is not what was shown; look at it again.")
            change = await asyncio.to_thread(guard.reject, waiting, live.identity, by)
            await self._again(server)
            return (change,)

    async def revoke(self, server: str, tool: str, *, identity: str, by: str) -> tuple[Change, ...]:
        """Take an approval back, also of a tool or a server that is not there just now."""
        async with self._deciding[server]:
            change = await asyncio.to_thread(self._trusted().revoke, server, identity, tool, by)
            await self._again(server)
            return (change,)

    async def quarantine(self, server: str, *, identity: str, by: str) -> tuple[Change, ...]:
        """Note that a server is quarantined: once it is let out, nothing of it is approved without a person."""
        async with self._deciding[server]:
            change = await asyncio.to_thread(self._trusted().hold, server, identity, by)
            return (change,) if change is not None else ()

    async def release(self, server: str, *, identity: str, by: str) -> tuple[Change, ...]:
        """Approve a quarantined server with everything that it lists first, or lists now."""
        async with self._deciding[server]:
            changes = [await asyncio.to_thread(self._trusted().release, server, identity, by)]
        waiting = self._snapshot.waiting_of(server)
        if any(one.state != "rejected" for one in waiting):
            changes += await self.approve(server, None, version=version_of_all(waiting), by=by)
        return tuple(changes)

    async def refresh(self) -> None:
        """Take up what other processes on the same database decided; worth a call every few seconds."""
        if self._guard is not None and await asyncio.to_thread(self._guard.heard_news):
            for server in tuple(self._live):
                async with self._deciding[server]:
                    await self._again(server)

    async def _again(self, server: str) -> None:
        live = self._live.get(server)
        if live is not None:
            await self._take(live)

    def _trusted(self) -> Guard:
        assert self._guard is not None, "this catalogue was made without a guard"
        return self._guard

    def _decidable(self, server: str) -> tuple[Listing, Guard]:
        live = self._live.get(server)
        if live is None:
            raise NothingToDecide(f"Server {server!r} has listed nothing yet.")
        return live, self._trusted()

    async def _save(self, listing: Listing) -> None:
        async with self._writing:
            try:
                await asyncio.to_thread(self._store.save, listing)
                self._saved[listing.server] = listing
            except Exception as error:  # the list in memory is good; only its survival is at risk
                log.warning("the tools of %r could not be saved: %s", listing.server, error)


def _snapshot(admitted: Iterable[Admitted]) -> Snapshot:
    everyone = tuple(admitted)
    return Snapshot(
        MappingProxyType({one.listing.server: one.listing for one in everyone}),
        MappingProxyType({tool.id: tool for one in everyone for tool in one.listing.tools.values()}),
        MappingProxyType({waiting.id: waiting for one in everyone for waiting in one.waiting.values()}),
    )


def _same(one: Listing, other: Listing) -> bool:
    """Whether nothing but the time of listing differs."""
    return msgspec.structs.replace(one, listed_at=0, stale=False) == msgspec.structs.replace(
        other, listed_at=0, stale=False
    )
