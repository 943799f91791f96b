"""What was found, how bad is it, and what can be done about it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

Level = Literal["ok", "note", "warning", "broken"]


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    area: str
    level: Level
    text: str
    fix: str = ""
    """What a person can do about it."""
    repair: Callable[[], object] | None = None
    """What --fix does about it: only what is safe."""

    def plain(self, *, fixed: bool) -> dict[str, Any]:
        """The finding for a program."""
        return {
            "area": self.area,
            "level": self.level,
            "text": self.text,
            "fix": self.fix,
            "fixable": self.repair is not None,
            "fixed": fixed,
        }


def ok(area: str, text: str) -> Finding:
    """All is well."""
    return Finding(area=area, level="ok", text=text)


def note(area: str, text: str, fix: str = "") -> Finding:
    """Worth knowing, and no fault."""
    return Finding(area=area, level="note", text=text, fix=fix)


def warning(area: str, text: str, fix: str = "", repair: Callable[[], object] | None = None) -> Finding:
    """It works, and should be better."""
    return Finding(area=area, level="warning", text=text, fix=fix, repair=repair)


def broken(area: str, text: str, fix: str = "", repair: Callable[[], object] | None = None) -> Finding:
    """It does not work."""
    return Finding(area=area, level="broken", text=text, fix=fix, repair=repair)
