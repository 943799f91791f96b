"""Is the database of this version? If not, bring it there, once, however many processes start together."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text

from mcpproxy.storage.errors import StorageUnreadable

MIGRATIONS: Final = Path(__file__).parent / "migrations"
# Kept here so that a start on an up-to-date database need not load Alembic (a quarter of a second).
HEAD: Final = "0004"
# Any number, as long as every replica takes the same one.
_ADVISORY_LOCK: Final = 0x6D63_7070


def is_current(connection: Connection, location: str) -> bool:
    """Whether the tables are the ones this version knows; a database of a later version is refused."""
    revision = stored_revision(connection)
    if revision is not None and revision > HEAD:
        raise StorageUnreadable(
            f"The database {location} was written by a later mcpproxy "
            f"(revision {revision}, this one knows {HEAD}). Update mcpproxy, or use another data directory."
        )
    return revision == HEAD


def bring_up_to_date(connection: Connection, location: str) -> None:
    """Run what is missing inside the caller's transaction, and under a lock that only one process holds."""
    if connection.dialect.name == "postgresql":
        # SQLite needs none: the transaction began with its one write lock.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    if not is_current(connection, location):
        _upgrade(connection)


def stored_revision(connection: Connection) -> str | None:
    """The revision written in the database; None in an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def _upgrade(connection: Connection) -> None:
    # Here, since only a start that migrates should pay for it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
