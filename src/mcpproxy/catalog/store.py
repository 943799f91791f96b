"""Where do tool lists stay? In the database, so that they survive a restart and an outage of their server."""

from __future__ import annotations

import logging

import msgspec
from msgspec import Struct
from sqlalchemy import delete, insert, select

from mcpproxy.catalog.listing import Listing, read_tools
from mcpproxy.catalog.pins import identity_key
from mcpproxy.catalog.tables import tool_lists
from mcpproxy.storage.engine import Storage

log = logging.getLogger(__name__)


class _Stored(Struct):
    definitions: list[str]
    instructions: str = ""
    protocol_version: str = ""
    server_version: str = ""


class ListingStore:
    """Reads and writes whole lists; used from a thread."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def load(self) -> list[Listing]:
        """Every stored list, marked stale: nobody has asked its server yet."""
        with self._storage.read() as connection:
            rows = connection.execute(select(tool_lists)).all()
        listings = []
        for row in rows:
            try:
                stored = msgspec.json.decode(row.listing, type=_Stored)
            except msgspec.MsgspecError as error:
                log.warning("the stored tools of %r cannot be read and are left out: %s", row.server, error)
                continue
            tools, _ = read_tools(row.server, [text.encode() for text in stored.definitions])
            listings.append(
                Listing(
                    server=row.server,
                    identity=row.identity,
                    tools=tools,
                    listed_at=row.listed_at / 1_000_000,
                    stale=True,
                    instructions=stored.instructions,
                    protocol_version=stored.protocol_version,
                    server_version=stored.server_version,
                )
            )
        return listings

    def save(self, listing: Listing) -> None:
        """Keep a server's newest list."""
        stored = _Stored(
            [tool.definition.decode() for tool in listing.tools.values()],
            listing.instructions,
            listing.protocol_version,
            listing.server_version,
        )
        row = {
            "server": listing.server,
            "identity": identity_key(listing.identity),
            "listing": msgspec.json.encode(stored).decode(),
            "listed_at": int(listing.listed_at * 1_000_000),
        }
        with self._storage.write() as connection:
            connection.execute(delete(tool_lists).where(tool_lists.c.server == listing.server))
            connection.execute(insert(tool_lists).values(row))
