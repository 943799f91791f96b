"""What waits for the operator's word, and what did the operator say? Read and decided on the database itself.

The running daemon takes a decision up from there within seconds; where none runs, the next start does.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpproxy.cli.errors import FAILED, Failure

if TYPE_CHECKING:
    from mcpproxy.catalog.approval import Waiting
    from mcpproxy.catalog.changes import Change
    from mcpproxy.catalog.guard import Guard
    from mcpproxy.catalog.listing import Listing
    from mcpproxy.cli.session import Session
    from mcpproxy.storage.engine import Storage


class Judged(Struct, frozen=True):
    """A server's last list, taken apart."""

    live: Listing
    approved: Listing
    waiting: Mapping[str, Waiting]


def judged(session: Session, storage: Storage) -> dict[str, Judged]:
    """The last list of each server in use that was judged before, by server."""
    from mcpproxy.catalog.store import ListingStore
    from mcpproxy.catalog.trust_store import TrustStore
    from mcpproxy.upstream.server import server_identity

    in_use = {server.name: server for server in session.config.servers if server.enabled and not server.quarantined}
    store, guard = TrustStore(storage), _guard(session, storage)
    found: dict[str, Judged] = {}
    for live in ListingStore(storage).load():
        server = in_use.get(live.server)
        same = server is not None and server_identity(server) == live.identity
        if same and store.load(live.server, live.identity).known:
            admitted = guard.review(live)
            found[live.server] = Judged(live, admitted.listing, admitted.waiting)
    return found


def waiting(session: Session, names: Sequence[str]) -> list[Waiting]:
    """What waits: all of it, or what these names of servers and tools mean."""
    with session.storage() as storage:
        everything = [one for each in judged(session, storage).values() for one in each.waiting.values()]
    if not names:
        return everything
    chosen: dict[str, Waiting] = {}
    servers = {server.name for server in session.config.servers}
    for name in names:
        matching = [one for one in everything if name in (one.id, one.server)]
        if not matching and name not in servers:
            message = f"nothing of the name {name!r} waits for approval."
            raise Failure(FAILED, message, "See what does: mcpproxy tools diff", code="NOT_WAITING")
        chosen |= {one.id: one for one in matching}
    return list(chosen.values())


def decide(session: Session, chosen: Sequence[Waiting], *, approve: bool) -> None:
    """Approve or refuse these very versions, and put it on record."""

    def work(guard: Guard, identities: Mapping[str, str]) -> list[Change]:
        by = getpass.getuser()
        if not approve:
            return [guard.reject(one, identities[one.server], by) for one in chosen]
        servers = dict.fromkeys(one.server for one in chosen)
        return [
            guard.approve(server, identities[server], [one for one in chosen if one.server == server], by)
            for server in servers
        ]

    _on_record(session, work)


def release(session: Session, server: str) -> None:
    """Approve a server with everything that it lists first, and put it on record."""

    def work(guard: Guard, identities: Mapping[str, str]) -> list[Change]:
        return [guard.release(server, identities[server], getpass.getuser())]

    _on_record(session, work)


def _on_record(session: Session, work: Any) -> None:
    from mcpproxy.upstream.server import server_identity

    identities = {server.name: server_identity(server) for server in session.config.servers}
    with _writable(session) as storage:
        changes = work(_guard(session, storage), identities)
        asyncio.run(_write(session, storage, changes))


@contextlib.contextmanager
def _writable(session: Session) -> Iterator[Storage]:
    from mcpproxy.storage.engine import open_storage

    storage = open_storage(session.config.storage, session.data_dir, session.config.activity.durability)
    try:
        yield storage
    finally:
        storage.close()


def _guard(session: Session, storage: Storage) -> Guard:
    from mcpproxy.catalog.guard import Guard
    from mcpproxy.catalog.trust_store import TrustStore

    servers = {server.name: server for server in session.config.servers}
    return Guard(TrustStore(storage), servers.get)


async def _write(session: Session, storage: Storage, changes: Sequence[Change]) -> None:
    from mcpproxy.activity.journal import Journal
    from mcpproxy.activity.record import Record
    from mcpproxy.config.mask import Masker, secrets_of

    masker = Masker()
    masker.learn("config", secrets_of(session.config))
    journal = Journal(storage, session.data_dir, lambda: session.config.activity, masker.mask)
    await journal.start()
    try:
        await journal.write(
            *(
                Record(
                    type=change.record_type,
                    source="cli",
                    server_name=change.server,
                    status=change.status,
                    metadata=change.metadata,
                )
                for change in changes
            )
        )
    finally:
        await journal.stop()
