"""`mcpproxy connect`: point a client at the proxy."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpproxy.cli.examples import examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "mcpproxy connect claude-code",
            "mcpproxy connect cursor --yes",
            "mcpproxy connect cursor --undo --yes",
            "mcpproxy connect codex --preview",
        )
    )(connect)


def connect(
    context: typer.Context,
    client: Annotated[
        str,
        typer.Argument(metavar="CLIENT", help="claude-code, claude-desktop, cursor, vscode, gemini or codex."),
    ],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Take the change back.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Show what would be written, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TOKEN", help="An agent token for the client, where agents need one."),
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Have the client start mcpproxy by itself instead of reaching the daemon.")
    ] = False,
) -> None:
    """Write the proxy into a client's own configuration: shows the change, asks, and keeps a backup.

    Then prints the permissions that let reads pass and have the client ask for the rest, in the client's own form.
    """
    from mcpproxy.cli.connect import command

    if undo:
        command.undo(context.obj, client, yes=yes)
    else:
        command.connect(context.obj, client, token=token, stdio=stdio, yes=yes, preview=preview)
