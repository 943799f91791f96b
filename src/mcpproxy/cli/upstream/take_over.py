"""How are another program's servers taken over? Shown first, then added one by one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.ask import agreed
from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.cli.screen import Cell, Column
from mcpproxy.cli.upstream.change import LATER, add
from mcpproxy.cli.upstream.foreign import Found, find
from mcpproxy.cli.upstream.listing import what
from mcpproxy.config.mask import masked

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen
    from mcpproxy.cli.session import Session

_COLUMNS: Final = (Column("FROM"), Column("NAME", gives=1), Column("WHAT", gives=3), Column("VERDICT", gives=2))


def take_over(session: Session, source: str | None, file: Path | None, *, yes: bool) -> None:
    """Show what is there and, once the user agrees, add what is new."""
    screen = session.screen
    found = find(source, file, session.loaded.path, session.config.servers)
    new = [each for each in found if each.verdict == "new"]
    if screen.output == "table":
        _print(screen, found)
    added: list[str] = []
    if new and agreed(screen, f"Add {looks.plural(len(new), 'server')}?", yes=yes):
        added = _add(session, new)
        if session.daemon is None:
            screen.note(LATER)
    report = {"found": [_plain(each) for each in found], "added": added}
    screen.show(report, lambda: _print_added(screen, added))


def _add(session: Session, new: list[Found]) -> list[str]:
    added = []
    for each in new:
        assert each.server is not None
        try:
            add(session, each.server, each.entry, wait=False, quiet=True)
        except Failure as error:
            raise Failure(FAILED, f"{each.name} was not added: {error.message}", error.hint) from None
        added.append(each.name)
    return added


def _print(screen: Screen, found: list[Found]) -> None:
    if not found:
        screen.note("No servers were found in the files of other programs.")
        return
    rows = [
        [
            Cell(each.source),
            Cell(each.name, style="bold"),
            Cell(_what(each), style="dim"),
            Cell(each.verdict, style="green" if each.verdict == "new" else "dim"),
        ]
        for each in found
    ]
    screen.rows(_COLUMNS, rows)


def _print_added(screen: Screen, added: list[str]) -> None:
    if added:
        screen.line(("Added: ", "green"), ", ".join(added))
        screen.note("How they are: mcpproxy upstream list")


def _what(each: Found) -> str:
    return what(masked(each.server)) if each.server is not None else ""


def _plain(each: Found) -> dict[str, Any]:
    return {
        "from": each.source,
        "file": str(each.path),
        "name": each.name,
        "verdict": each.verdict,
        "config": masked(each.server) if each.server is not None else None,
    }
