"""`mcpproxy version`: which one is this?"""

from __future__ import annotations

import typer

from mcpproxy.cli.examples import examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("mcpproxy version", "mcpproxy version -o json"))(version)


def version(context: typer.Context) -> None:
    """Print the version."""
    import mcpproxy

    screen = context.obj.screen
    screen.show({"version": mcpproxy.__version__}, lambda: screen.write(f"mcpproxy {mcpproxy.__version__}"))
