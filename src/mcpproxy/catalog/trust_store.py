"""Where do decisions about tools stay? In the database, for as long as it lives, whatever becomes of the tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, text, update

from mcpproxy.catalog.approval import AUTOMATIC, Approval, Book, Pin
from mcpproxy.catalog.pins import identity_key
from mcpproxy.catalog.tables import trust_history, trust_pins, trust_servers
from mcpproxy.storage.engine import Storage

MAX_AUTOMATIC: Final = 20_000
"""How many decisions that no person made are kept in a server's history; those of people are all kept."""
# Any number, as long as every replica takes the same one, and none that another room takes.
_ADVISORY_LOCK: Final = 0x7472_7573


class Event(Struct, frozen=True, kw_only=True):
    """One decision of the past."""

    seq: int
    at: float
    server: str
    tool: str | None
    event: str
    hash: str | None
    by: str


class TrustStore:
    """Reads and writes decisions; used from a thread."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def load(self, server: str, identity: str) -> Book:
        """What was decided about a server."""
        with self._storage.read() as connection:
            return _load(connection, server, identity)

    def approve(
        self, server: str, identity: str, choose: Callable[[Book], Iterable[Approval]]
    ) -> tuple[Book, tuple[Approval, ...]]:
        """Approve what `choose` picks in the light of what is decided already, and take the server as known."""
        with self._storage.write() as connection:
            book = _lock_and_load(connection, server, identity)
            approvals = tuple(choose(book))
            now = _now()
            _upsert_server(connection, book, {"known_at": now} if not book.known else {})
            _write_pins(connection, book, {one.tool: _approved(one, now) for one in approvals})
            _remember(connection, book, [(one.tool, "approved", one.hash, one.by) for one in approvals], now)
            return _load(connection, server, identity), approvals

    def refuse(self, server: str, identity: str, tool: str, version: str, by: str) -> Book:
        """Refuse one version of a tool. Where it is the approved one, that approval is taken back."""
        with self._storage.write() as connection:
            book = _lock_and_load(connection, server, identity)
            now = _now()
            pin = book.pins.get(tool)
            values: dict[str, Any] = {"refused": version, "refused_by": by, "refused_at": now}
            revoked = pin is not None and pin.hash == version
            if revoked:
                values |= {"hash": None, "definition": None, "approved_by": None, "approved_at": None}
            _upsert_server(connection, book, {})
            _write_pins(connection, book, {tool: values})
            _remember(connection, book, [(tool, "revoked" if revoked else "rejected", version, by)], now)
            return _load(connection, server, identity)

    def hold(self, server: str, identity: str, by: str) -> Book:
        """The server is quarantined: from now on nothing of it is approved without a person."""
        with self._storage.write() as connection:
            book = _lock_and_load(connection, server, identity)
            if book.held:
                return book
            _upsert_server(connection, book, {"held": True, "released_by": None})
            _remember(connection, book, [(None, "quarantined", None, by)], _now())
            return _load(connection, server, identity)

    def release(self, server: str, identity: str, by: str) -> Book:
        """A person approved the server and all that it lists first."""
        with self._storage.write() as connection:
            book = _lock_and_load(connection, server, identity)
            _upsert_server(connection, book, {"held": False, "released_by": by})
            _remember(connection, book, [(None, "released", None, by)], _now())
            return _load(connection, server, identity)

    def history(self, server: str, tool: str | None = None, limit: int = 100) -> list[Event]:
        """The decisions about a server, or one of its tools, newest first."""
        wanted = select(trust_history).where(trust_history.c.server == server)
        if tool is not None:
            wanted = wanted.where(trust_history.c.tool == tool)
        with self._storage.read() as connection:
            rows = connection.execute(wanted.order_by(trust_history.c.seq.desc()).limit(limit)).all()
        return [
            Event(
                seq=row.seq,
                at=row.at / 1_000_000,
                server=row.server,
                tool=row.tool,
                event=row.event,
                hash=row.hash,
                by=row.by,
            )
            for row in rows
        ]

    def latest(self) -> int:
        """The number of the last decision, to see whether another process made one since."""
        with self._storage.read() as connection:
            number: int | None = connection.execute(select(func.max(trust_history.c.seq))).scalar()
        return number or 0


def _lock_and_load(connection: Connection, server: str, identity: str) -> Book:
    if connection.dialect.name == "postgresql":
        # SQLite needs none: the transaction began with its one write lock.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    return _load(connection, server, identity)


def _load(connection: Connection, server: str, identity: str) -> Book:
    key = identity_key(identity)
    mine = (trust_servers.c.server == server) & (trust_servers.c.identity_key == key)
    known = connection.execute(select(trust_servers).where(mine)).first()
    pins = {
        row.tool: Pin(
            hash=row.hash,
            definition=(row.definition or "").encode(),
            approved_by=row.approved_by or "",
            approved_at=(row.approved_at or 0) / 1_000_000,
            refused=row.refused,
        )
        for row in connection.execute(select(trust_pins).where(_pins_of(server, key)))
    }
    others = (trust_pins.c.server == server) & (trust_pins.c.identity_key != key) & trust_pins.c.refused.is_not(None)
    barred = frozenset(connection.execute(select(trust_pins.c.tool).where(others)).scalars())
    return Book(
        server=server,
        identity=identity,
        known=known is not None and known.known_at is not None,
        held=known is not None and known.held,
        released_by=known.released_by if known is not None else None,
        pins=pins,
        barred=barred,
    )


def _upsert_server(connection: Connection, book: Book, values: dict[str, Any]) -> None:
    key = {"server": book.server, "identity_key": identity_key(book.identity)}
    mine = (trust_servers.c.server == key["server"]) & (trust_servers.c.identity_key == key["identity_key"])
    if connection.execute(select(trust_servers.c.server).where(mine)).first() is None:
        row = {"held": False, "identity": key["identity_key"]} | key | values
        connection.execute(insert(trust_servers).values(row))
    elif values:
        connection.execute(update(trust_servers).where(mine).values(values))


def _pins_of(server: str, key: str) -> ColumnElement[bool]:
    return (trust_pins.c.server == server) & (trust_pins.c.identity_key == key)


def _write_pins(connection: Connection, book: Book, pins: dict[str, dict[str, Any]]) -> None:
    key = identity_key(book.identity)
    known = {"server": book.server, "identity_key": key}
    new = [known | {"tool": tool} | values for tool, values in pins.items() if tool not in book.pins]
    if new:
        connection.execute(insert(trust_pins), new)
    for tool, values in pins.items():
        if tool in book.pins:
            mine = _pins_of(book.server, key) & (trust_pins.c.tool == tool)
            connection.execute(update(trust_pins).where(mine).values(values))


def _approved(approval: Approval, now: int) -> dict[str, Any]:
    return {
        "hash": approval.hash,
        "definition": approval.definition.decode(),
        "approved_by": approval.by,
        "approved_at": now,
        "refused": None,
        "refused_by": None,
        "refused_at": None,
    }


_Entry = tuple[str | None, str, str | None, str]


def _remember(connection: Connection, book: Book, entries: list[_Entry], now: int) -> None:
    if not entries:
        return
    rows = [
        {
            "at": now,
            "server": book.server,
            "identity_key": identity_key(book.identity),
            "tool": tool,
            "event": event,
            "hash": version,
            "by": by,
        }
        for tool, event, version, by in entries
    ]
    connection.execute(insert(trust_history), rows)
    # A server that rewords itself every second must not fill the disk.
    automatic = (trust_history.c.server == book.server) & trust_history.c.by.in_(AUTOMATIC)
    oldest_kept = connection.execute(
        select(trust_history.c.seq).where(automatic).order_by(trust_history.c.seq.desc()).offset(MAX_AUTOMATIC).limit(1)
    ).scalar()
    if oldest_kept is not None:
        connection.execute(delete(trust_history).where(automatic & (trust_history.c.seq <= oldest_kept)))


def _now() -> int:
    return int(time.time() * 1_000_000)
