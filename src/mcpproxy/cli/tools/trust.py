"""What waits for the operator's word, and what did the operator say? Asked of the daemon, else of the database."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.cli.screen import value_of

if TYPE_CHECKING:
    from mcpproxy.catalog.approval import Waiting
    from mcpproxy.catalog.changes import Change
    from mcpproxy.catalog.guard import Guard
    from mcpproxy.catalog.listing import Listing
    from mcpproxy.cli.session import Session
    from mcpproxy.storage.engine import Storage


View = dict[str, Any]
"""One thing that waits, as REST shows it."""


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
    for stored in ListingStore(storage).load():
        server = in_use.get(stored.server)
        identity = server_identity(server) if server is not None else ""
        if stored.is_of(identity) and store.load(stored.server, identity).known:
            live = structs.replace(stored, identity=identity)
            admitted = guard.review(live)
            found[live.server] = Judged(live, admitted.listing, admitted.waiting)
    return found


def waiting(session: Session, names: Sequence[str]) -> list[View]:
    """What waits: all of it, or what these names of servers and tools mean."""
    if session.daemon is not None:
        everything: list[View] = value_of(session.daemon.get("/tools/waiting"))["waiting"]
    else:
        with session.storage() as storage:
            found = [one for each in judged(session, storage).values() for one in each.waiting.values()]
        everything = [_view(one) for one in found]
    if not names:
        return everything
    chosen: dict[str, View] = {}
    servers = _known(session)
    for name in names:
        matching = [one for one in everything if name in (one["name"], one["server"])]
        if not matching and name not in servers:
            message = f"nothing of the name {name!r} waits for approval."
            raise Failure(FAILED, message, "See what does: mcpproxy tools diff", code="NOT_WAITING")
        chosen |= {one["name"]: one for one in matching}
    return list(chosen.values())


def _known(session: Session) -> set[str]:
    """The servers there are; a daemon may have one that is in no file, such as the demo."""
    if session.daemon is not None:
        return {server["name"] for server in value_of(session.daemon.get("/servers"))["servers"]}
    return {server.name for server in session.config.servers}


def decide(session: Session, chosen: Sequence[View], *, approve: bool) -> None:
    """Approve or refuse these very versions; both go on record."""
    if session.daemon is not None:
        for one in chosen:
            body = {"name": one["name"], "version": one["version"]}
            session.daemon.post("/tools/approve" if approve else "/tools/reject", body)
        return

    def work(guard: Guard, identities: Mapping[str, str]) -> list[Change]:
        with session.storage() as storage:
            found = {one.id: one for each in judged(session, storage).values() for one in each.waiting.values()}
        # Only what was looked at: a list that was saved since has other versions.
        meant = [found[one["name"]] for one in chosen if found[one["name"]].hash == one["version"]]
        by = getpass.getuser()
        if not approve:
            return [guard.reject(one, identities[one.server], by) for one in meant]
        servers = dict.fromkeys(one.server for one in meant)
        return [
            guard.approve(server, identities[server], [one for one in meant if one.server == server], by)
            for server in servers
        ]

    _on_record(session, work)


def release(session: Session, server: str) -> None:
    """Approve a server with everything that it lists first, and put it on record."""

    def work(guard: Guard, identities: Mapping[str, str]) -> list[Change]:
        return [guard.release(server, identities[server], getpass.getuser())]

    _on_record(session, work)


def _view(one: Waiting) -> View:
    from mcpproxy.catalog.changes import tool_label
    from mcpproxy.catalog.shown import escaped

    return {
        "name": one.id,
        "label": tool_label(one.tool),
        "server": one.server,
        "state": one.state,
        "version": one.hash,
        "differences": [
            {"path": each.path, "kind": each.kind, "before": each.before, "after": each.after, "loud": each.loud}
            for each in one.differences
        ],
        "findings": [
            {
                "rule": each.rule,
                "severity": each.severity,
                "where": each.where,
                "excerpt": each.excerpt,
                "why": each.why,
            }
            for each in one.findings
        ],
        "definition": escaped(one.live.decode(errors="replace")),
    }


def _on_record(session: Session, work: Callable[[Guard, Mapping[str, str]], list[Change]]) -> None:
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
