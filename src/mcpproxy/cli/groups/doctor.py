"""`mcpproxy doctor`: is everything as it should be?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpproxy.cli.examples import examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("mcpproxy doctor", "mcpproxy doctor --quick -o json", "mcpproxy doctor --fix"))(doctor)


def doctor(
    context: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired safely, such as file modes.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the check of every record on the log.")] = False,
    salvage: Annotated[
        Path | None,
        typer.Option(
            "--salvage", metavar="DIR", help="Copy what can be read of a damaged database to a new one in this folder."
        ),
    ] = None,
) -> None:
    """Examine configuration, files, database, log, port, secrets, servers and tools; says what to do about each.

    Without a daemon every server is started once to see whether it works. Exit code 1 where something is broken.
    """
    if salvage is not None:
        from mcpproxy.cli.doctor.salvage import salvage_into

        salvage_into(context.obj, salvage)
        return
    from mcpproxy.cli.doctor.command import examine

    examine(context.obj, fix=fix, quick=quick)
