"""Which command is meant? The quick answers come before anything slow is imported."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The `mcpproxy` console script."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _fill_closed_streams()
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


def _fill_closed_streams() -> None:
    """Let a stream that was closed (`>&-`) lead nowhere: the next file that is opened must not take its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
