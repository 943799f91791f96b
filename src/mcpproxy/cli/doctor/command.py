"""How does an examination go? One look after the other, each finding at once, and the repairs at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import typer

from mcpproxy.cli import looks
from mcpproxy.cli.doctor.finding import Finding, note
from mcpproxy.cli.doctor.house import check_config, check_daemon, check_data_dir, check_keyring
from mcpproxy.cli.doctor.records import check_database
from mcpproxy.cli.doctor.servers import check_servers
from mcpproxy.cli.doctor.tools import check_tools

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen
    from mcpproxy.cli.session import Session

_MARKS: Final = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "broken": ("✗", "bold red")}
_WORDS: Final = {"ok": "ok", "note": "note", "warning": "warning", "broken": "BROKEN"}


def examine(session: Session, *, fix: bool, quick: bool) -> None:
    """Look at everything; exit code 1 where something is broken and stays so."""
    screen = session.screen
    report = []
    left = 0
    for finding in _findings(session, quick=quick):
        fixed = fix and _repaired(finding)
        report.append(finding.plain(fixed=fixed))
        left += finding.level == "broken" and not fixed
        if screen.output == "table":
            _print(screen, finding, fixed=fixed)
    screen.show({"ok": not left, "findings": report}, lambda: _print_end(screen, left))
    if left:
        raise typer.Exit(1)


def _findings(session: Session, *, quick: bool) -> Iterator[Finding]:
    first = list(check_config(session))
    yield from first
    if any(finding.level == "broken" for finding in first):
        return  # everything else depends on it
    yield from check_data_dir(session)
    records = []
    for finding in check_database(session, quick=quick):
        records.append(finding)
        yield finding
    yield from check_daemon(session)
    yield from check_keyring(session)
    if session.daemon is None and any(each.area == "database" and each.level == "broken" for each in records):
        yield note("servers", "they were not started, since the database cannot be used")
        return
    yield from check_servers(session)
    yield from check_tools(session)


def _repaired(finding: Finding) -> bool:
    if finding.repair is None:
        return False
    try:
        finding.repair()
    except OSError:
        return False
    return True


def _print(screen: Screen, finding: Finding, *, fixed: bool) -> None:
    mark, style = _MARKS[finding.level]
    shown = mark if screen.terminal else f"{_WORDS[finding.level]:<7}"
    screen.line((shown, style), " ", (f"{finding.area:<10}", "bold"), f" {finding.text}")
    indent = " " * (13 if screen.terminal else 19)
    if fixed:
        screen.line(indent, ("fixed", "green"))
    elif finding.fix and finding.level != "ok":
        screen.line(indent, (finding.fix, "cyan"))


def _print_end(screen: Screen, left: int) -> None:
    if left:
        screen.line((f"{looks.plural(left, 'thing is', 'things are')} broken.", "bold red"))
    else:
        screen.line(("Nothing is broken.", "bold green"))
