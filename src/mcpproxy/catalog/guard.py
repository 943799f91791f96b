"""Who lets a tool in? Each list that a server gives passes here, and what agents may see of it comes out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct

from mcpproxy.catalog.approval import AUTOMATIC, Approval, Book, Trust, Waiting, parts_of, self_approved, sort_out
from mcpproxy.catalog.changes import Change, States, compare
from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.look import MAX_SCANNED, Look
from mcpproxy.catalog.scan.neighbours import Neighbours
from mcpproxy.catalog.trust_store import Event, TrustStore
from mcpproxy.config.models import Server

log = logging.getLogger(__name__)


class NothingToDecide(Exception):
    """There is nothing of that name to decide about."""


class Admitted(Struct, frozen=True, kw_only=True):
    """A list after it passed."""

    listing: Listing
    """What agents may see and call, as it was approved."""
    waiting: Mapping[str, Waiting] = MappingProxyType({})
    changes: tuple[Change, ...] = ()


class Guard:
    """Holds every list against what was decided. Used from threads, by one at a time for each server."""

    def __init__(self, store: TrustStore, settings: Callable[[str], Server | None]) -> None:
        self._store = store
        self._settings = settings
        self._neighbours = Neighbours()
        self._books: dict[str, Book] = {}
        self._looks: dict[str, Look] = {}
        self._states: dict[str, States] = {}
        self._latest = 0

    def admit(self, live: Listing, last_known: Listing | None = None) -> Admitted:
        """A server listed its tools. Approves what needs no person, and tells what is new since the last list."""
        before = self._states.get(live.server)
        if before is None and last_known is not None and last_known.is_of(live.identity):
            last_known = msgspec.structs.replace(last_known, identity=live.identity)
            _, before = self._sorted(last_known, self._book(last_known), self._look(last_known))
        look = self._look(live)
        approvals = self._approve_by_itself(live, look)
        admitted, after = self._sorted(live, self._book(live), look)
        self._states[live.server] = after
        found = {one.tool: look.scan(one.definition) for one in approvals[:MAX_SCANNED]}
        found |= {name: waiting.findings for name, waiting in admitted.waiting.items()}
        changes = tuple(compare(live.server, before or {}, after, approvals, found))
        if after != before or live.server not in self._neighbours:
            self._neighbours.put(live.server, admitted.listing.tools.values())
        return msgspec.structs.replace(admitted, changes=changes)

    def review(self, live: Listing) -> Admitted:
        """What may be used of a list as things stand; approves nothing and tells nothing."""
        admitted, self._states[live.server] = self._sorted(live, self._book(live), self._look(live))
        self._neighbours.put(live.server, admitted.listing.tools.values())
        return admitted

    def leave(self, server: str) -> None:
        """The server is off; its tools are nobody's neighbours any more. What was decided stays."""
        self._neighbours.drop(server)

    def _approve_by_itself(self, live: Listing, look: Look) -> tuple[Approval, ...]:
        settings = self._settings(live.server)
        trust: Trust = settings.trust if settings is not None else "manual"
        book = self._book(live)
        if book.known and next(self_approved(live, book, trust, look.scan, look.hash_of), None) is None:
            return ()
        try:
            self._books[live.server], approvals = self._store.approve(
                live.server, live.identity, lambda fresh: self_approved(live, fresh, trust, look.scan, look.hash_of)
            )
        except Exception as error:  # an approval that is not written down does not count
            log.error("new tools of %r wait, since their approval could not be saved: %s", live.server, error)
            return ()
        return approvals

    def _sorted(self, live: Listing, book: Book, look: Look) -> tuple[Admitted, States]:
        sorted_list = sort_out(live, book, look.scan, look.hash_of)
        states = {
            name: (sorted_list.waiting[name].state if name in sorted_list.waiting else "approved", look.hash_of(part))
            for name, part in parts_of(live)
        }
        return Admitted(listing=sorted_list.listing, waiting=sorted_list.waiting), states

    def _book(self, listing: Listing) -> Book:
        book = self._books.get(listing.server)
        if book is None or book.identity != listing.identity:
            book = self._store.load(listing.server, listing.identity)
            self._books[listing.server] = book
        return book

    def _look(self, live: Listing) -> Look:
        look = Look(live, self._neighbours, self._looks.get(live.server))
        self._looks[live.server] = look
        return look

    # A person's decisions.

    def approve(self, server: str, identity: str, chosen: Iterable[Waiting], by: str) -> Change:
        """These versions may be used."""
        approvals = [Approval(tool=one.tool, hash=one.hash, definition=one.live, by=_person(by)) for one in chosen]
        self._books[server], _ = self._store.approve(server, identity, lambda _book: approvals)
        return Change(server=server, what="approved", tools=tuple(one.tool for one in approvals), by=by)

    def reject(self, waiting: Waiting, identity: str, by: str) -> Change:
        """This version may not be used, and no other without a person."""
        self._books[waiting.server] = self._store.refuse(
            waiting.server, identity, waiting.tool, waiting.hash, _person(by)
        )
        return Change(server=waiting.server, what="rejected", tools=(waiting.tool,), by=by)

    def revoke(self, server: str, identity: str, tool: str, by: str) -> Change:
        """What was approved may not be used any more. Works for tools too that are not listed just now."""
        pin = self._store.load(server, identity).pins.get(tool)
        if pin is None or pin.hash is None:
            raise NothingToDecide(f"No version of this tool of server {server!r} is approved.")
        self._books[server] = self._store.refuse(server, identity, tool, pin.hash, _person(by))
        return Change(server=server, what="revoked", tools=(tool,), by=by)

    def hold(self, server: str, identity: str, by: str) -> Change | None:
        """The server is quarantined; None where that was known."""
        if self._store.load(server, identity).held:
            return None
        self._books[server] = self._store.hold(server, identity, by)
        return Change(server=server, what="quarantined", by=by)

    def release(self, server: str, identity: str, by: str) -> Change:
        """A person approved the server with everything that it lists first."""
        self._books[server] = self._store.release(server, identity, _person(by))
        return Change(server=server, what="released", by=by)

    # Other processes and other days.

    def heard_news(self) -> bool:
        """Whether a decision was made since this was last asked, here or in another process."""
        latest = self._store.latest()
        if latest == self._latest:
            return False
        self._latest = latest
        self._books.clear()
        return True

    def history(self, server: str, tool: str | None = None, limit: int = 100) -> list[Event]:
        """The decisions about a server, or one of its tools, newest first."""
        return self._store.history(server, tool, limit)


def _person(by: str) -> str:
    if not by or by in AUTOMATIC:
        raise ValueError(f"a decision needs the name of whoever made it, not {by!r}")
    return by
