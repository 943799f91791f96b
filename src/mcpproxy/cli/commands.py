"""Which commands are there? One typer application; each group in a module of its own, imported when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mcpproxy.cli import errors
from mcpproxy.cli.options import Options, UsageError, split

app = typer.Typer(
    name="mcpproxy",
    help="One MCP endpoint in front of all your MCP servers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Every command also takes --config FILE, --data-dir DIR, -o table|json|yaml, --json and --log-level LEVEL.",
)


@app.command()
def version() -> None:
    """Print the version."""
    import mcpproxy

    typer.echo(f"mcpproxy {mcpproxy.__version__}")


@app.command()
def serve(
    context: typer.Context,
    listen: Annotated[str | None, typer.Option(help="Address to listen on, such as 127.0.0.1:8080.")] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve MCP on stdin and stdout instead of HTTP.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Add the built-in demo server, with a throw-away data directory.")
    ] = False,
) -> None:
    """Run the proxy.

    Example: mcpproxy serve --demo
    """
    from mcpproxy.cli.serve import serve as run_server

    options: Options = context.obj
    run_server(options, listen=listen, stdio=stdio, demo=demo)


def run() -> None:
    """Run the command line."""
    try:
        options, rest = split(sys.argv[1:])
    except UsageError as error:
        errors.fail(errors.USAGE, str(error), "See: mcpproxy --help", as_json=error.as_json)
    as_json = options.output == "json"
    try:
        raise SystemExit(app(rest, obj=options, standalone_mode=not as_json))
    except typer.TyperException as error:
        errors.fail(errors.USAGE, error.format_message(), "See: mcpproxy --help", as_json=as_json)
