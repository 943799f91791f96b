"""Which command is meant? The quick answers come before anything slow is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """The `mcpproxy` console script."""
    match sys.argv[1:]:
        case ["version"] | ["--version"]:
            import mcpproxy

            sys.stdout.write(f"mcpproxy {mcpproxy.__version__}\n")
        case ["completion", "bash" | "zsh" | "fish" as shell]:
            from mcpproxy.cli.shells import SCRIPTS

            sys.stdout.write(SCRIPTS[shell])
        case ["__complete", *rest] if rest:
            from mcpproxy.cli.complete import main as complete

            complete(rest)
        case _:
            from mcpproxy.cli.commands import run

            run()
