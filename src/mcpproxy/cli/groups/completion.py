"""`mcpproxy completion`: let the shell complete commands, servers and tools."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpproxy.cli.examples import examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            'eval "$(mcpproxy completion bash)"',
            "mcpproxy completion zsh",
            "mcpproxy completion fish > ~/.config/fish/completions/mcpproxy.fish",
        )
    )(completion)


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the script that lets a shell complete commands, options, servers, tools and their parameters."""
    from mcpproxy.cli.errors import USAGE, Failure
    from mcpproxy.cli.shells import SCRIPTS

    if shell not in SCRIPTS:
        raise Failure(USAGE, f"there is no completion for {shell!r}; give one of {', '.join(SCRIPTS)}.")
    typer.echo(SCRIPTS[shell], nl=False)
