"""How does help show a command in use? As lines that were run: a test runs every one of them."""

from __future__ import annotations

from typing import Final

HEADING: Final = "Examples:"


def examples(*lines: str) -> str:
    """The lines as the last part of a command's help."""
    return "\b\n" + "\n".join([HEADING, *(f"  {line}" for line in lines)])


def examples_in(epilog: str | None) -> list[str]:
    """The lines again."""
    lines = (epilog or "").splitlines()
    return [line.strip() for line in lines[lines.index(HEADING) + 1 :]] if HEADING in lines else []
