"""`mcpproxy serve`: run the proxy."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpproxy.cli.examples import examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("mcpproxy serve --demo", "mcpproxy serve --listen 127.0.0.1:9090"))(serve)


def serve(
    context: typer.Context,
    listen: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on, such as 127.0.0.1:8080.")
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve MCP on stdin and stdout instead of HTTP.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Add the built-in demo server, with a throw-away data directory.")
    ] = False,
) -> None:
    """Run the proxy."""
    from mcpproxy.cli.serve import serve as run

    run(context.obj.options, listen=listen, stdio=stdio, demo=demo)
