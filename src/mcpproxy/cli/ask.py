"""Does the user agree? Asked on a terminal only; elsewhere nothing happens without --yes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen


def agreed(screen: Screen, question: str, *, yes: bool) -> bool:
    """Whether to go on."""
    if yes:
        return True
    if screen.output != "table" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        screen.note("Nothing was changed. Add --yes to do it.")
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip().lower()
    if answer in ("y", "yes"):
        return True
    screen.note("Nothing was changed.")
    return False
