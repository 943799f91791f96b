"""How does a list of records look? One line each: when, what, meant how, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.screen import Cell, Column, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from msgspec import Raw

    from mcpproxy.cli.screen import Screen

COLUMNS: Final = (
    Column("ID"),
    Column("TIME"),
    Column("SERVER", gives=1),
    Column("TOOL", gives=2),
    Column("INTENT"),
    Column("STATUS"),
    Column("DURATION", right=True),
)
_WHOLE_IDS_FROM: Final = 110
_ID_END: Final = 8


def print_list(screen: Screen, records: Iterable[Raw]) -> None:
    """Print records as a table."""
    screen.rows(COLUMNS, [cells(screen, value_of(record)) for record in records])


def cells(screen: Screen, record: dict[str, Any], *, clock: bool = False) -> list[Cell]:
    """One record as a row; with `clock`, its time of day instead of its age."""
    return [
        Cell(record["id"], short_id(screen, record["id"]), "dim"),
        _time(record["timestamp"], clock=clock),
        Cell(record["server_name"] or ""),
        _tool(record),
        looks.intent(intent_of(record)),
        looks.status(record["status"]),
        Cell(looks.duration(record["duration_ms"])),
    ]


def short_id(screen: Screen, id_: str) -> str:
    """The id, or where the terminal is narrow its end: the beginnings of ids made at the same moment are alike."""
    return id_ if screen.width >= _WHOLE_IDS_FROM else id_[-_ID_END:]


def intent_of(record: dict[str, Any]) -> str | None:
    """The declared kind of operation."""
    intent = record["metadata"].get("intent")
    return intent.get("operation_type") if isinstance(intent, dict) else None


def _time(timestamp: str, *, clock: bool) -> Cell:
    cell = looks.moment(timestamp)
    local = datetime.fromisoformat(timestamp).astimezone()
    return Cell(cell.text, local.strftime("%H:%M:%S"), cell.style) if clock else cell


def _tool(record: dict[str, Any]) -> Cell:
    name, kind = record["tool_name"] or "", record["type"]
    if not name:
        return Cell("", kind, "dim")
    return Cell(name, f"{name} (decision)" if kind == "policy_decision" else name)
