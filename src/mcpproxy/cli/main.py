"""Which command is meant? The quick answers come before anything slow is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """The `mcpproxy` console script."""
    if sys.argv[1:] in (["version"], ["--version"]):
        import mcpproxy

        sys.stdout.write(f"mcpproxy {mcpproxy.__version__}\n")
        return
    from mcpproxy.cli.commands import run

    run()
