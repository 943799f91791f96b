"""`mcpproxy config`: what did the operator say, and is it right?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mcpproxy.cli.examples import examples

group = typer.Typer(help="Look at the configuration.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="config")


@group.command(epilog=examples("mcpproxy config show", "mcpproxy config show -o yaml"))
def show(context: typer.Context) -> None:
    """Print the whole configuration with its defaults, secrets hidden."""
    from mcpproxy.config.mask import masked

    screen = context.obj.screen
    config = masked(context.obj.config)
    screen.show(config, lambda: _print(screen, config))


@group.command(epilog=examples("mcpproxy config validate", "mcpproxy config validate --config mcp_config.json"))
def validate(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Another file than the one in force.")] = None,
) -> None:
    """Check a configuration file. Exit code 4 where it does not load, with everything that is wrong."""
    from mcpproxy.config.load import load

    session = context.obj
    loaded = load(file.absolute()) if file is not None else session.loaded
    found = {"valid": True, "path": str(loaded.path), "warnings": list(loaded.warnings)}
    session.screen.show(found, lambda: _print_valid(session.screen, found))


@group.command(epilog=examples("mcpproxy config path"))
def path(context: typer.Context) -> None:
    """Print which configuration file is in force; with -o json, the data directory too."""
    from mcpproxy.config.load import find_path

    session = context.obj
    config = str(find_path(session.options.config))
    found = {"config": config, "data_dir": str(session.data_dir)}
    session.screen.show(found, lambda: session.screen.write(config))


def _print(screen: Any, config: dict[str, Any]) -> None:
    from mcpproxy.cli.screen import Cell, Column

    screen.rows((Column("KEY"), Column("VALUE", gives=1)), [[Cell(key), Cell(value)] for key, value in _flat(config)])


def _flat(value: Any, path: str = "") -> list[tuple[str, str]]:
    import json

    if isinstance(value, dict) and value:
        return [row for key, item in value.items() for row in _flat(item, f"{path}.{key}" if path else key)]
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        named = [(item.get("name", str(place)), item) for place, item in enumerate(value)]
        return [row for name, item in named for row in _flat(_said(item), f"{path}[{name}]")]
    return [(path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]


def _said(server: dict[str, Any]) -> dict[str, Any]:
    """A server without what is empty or absent, which would be most of it."""
    return {key: value for key, value in server.items() if value not in (None, {}, []) and key != "name"}


def _print_valid(screen: Any, found: dict[str, Any]) -> None:
    for warning in found["warnings"]:
        screen.line(("warning ", "yellow"), warning)
    screen.line((found["path"], "bold"), " loads")
