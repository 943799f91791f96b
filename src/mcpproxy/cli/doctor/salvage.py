"""What is left of a damaged database? `mcpproxy doctor --salvage` copies it, and says how to go on with the copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mcpproxy.cli import looks
from mcpproxy.cli.errors import FAILED, PERMISSION, USAGE, Failure

if TYPE_CHECKING:
    from sqlalchemy import Table

    from mcpproxy.cli.session import Session
    from mcpproxy.storage.salvage import Saved


def salvage_into(session: Session, folder: Path) -> None:
    """Copy what can be read of the database into a new one in a folder; the damaged one stays as it is."""
    from mcpproxy.storage.engine import FILE_NAME, open_storage
    from mcpproxy.storage.salvage import salvage

    damaged, new = session.data_dir / FILE_NAME, folder / FILE_NAME
    _check(session, damaged, new)
    with session.screen.working(f"Reading {damaged}"):
        storage = open_storage("sqlite", folder)
        try:
            saved = salvage(damaged, storage, _tables())
        finally:
            storage.close()
    steps = [
        f"mkdir {session.data_dir}/damaged",
        f"mv {damaged}* {session.data_dir}/damaged/",
        f"mv {new} {damaged}",
        "mcpproxy doctor",
    ]
    plain = {"database": str(new), "tables": [_plain(each) for each in saved], "steps": steps}
    session.screen.show(plain, lambda: _print(session, new, saved, steps))


def _check(session: Session, damaged: Path, new: Path) -> None:
    from mcpproxy.config.files import private_dir

    if session.config.storage != "sqlite":
        message = "`storage` names a PostgreSQL server, and --salvage is for a damaged SQLite file."
        raise Failure(USAGE, message, "Restore it with PostgreSQL's own programs; see docs/operations.md.")
    if session.daemon is not None:
        message = f"mcpproxy is running ({session.daemon.where}) and would go on writing to the damaged file."
        raise Failure(FAILED, message, "Stop it first.")
    if not damaged.exists():
        raise Failure(FAILED, f"there is no database at {damaged}.")
    if new.exists():
        raise Failure(FAILED, f"{new} is there already.", "Name another folder.")
    try:
        private_dir(new.parent)
    except OSError as error:
        raise Failure(PERMISSION, f"{new.parent} cannot be used: {error.strerror}.") from None


def _tables() -> list[Table]:
    """Everything but what is made anew from the records: their index, counts and text search."""
    from mcpproxy.access.tables import agent_tokens
    from mcpproxy.activity.tables import activity, activity_checkpoints, activity_open_calls
    from mcpproxy.catalog.tables import tool_lists, trust_history, trust_pins, trust_servers

    decided = [trust_servers, trust_pins, trust_history]
    return [activity, activity_checkpoints, activity_open_calls, agent_tokens, *decided, tool_lists]


def _plain(saved: Saved) -> dict[str, object]:
    return {"table": saved.table, "rows": saved.rows, "gaps": saved.gaps}


def _print(session: Session, new: Path, saved: list[Saved], steps: list[str]) -> None:
    screen = session.screen
    for each in saved:
        gaps = f", with {looks.plural(each.gaps, 'gap')}" if each.gaps else ""
        screen.line(f"{each.table:<22}{looks.plural(each.rows, 'row')}{gaps}")
    screen.line(f"What could be read is in {new}. To go on with it:")
    for step in steps:
        screen.line("  ", (step, "cyan"))
