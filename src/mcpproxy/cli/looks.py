"""How does a moment, a length of time, a size, an intent or a state look to a person?"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Final

from mcpproxy.cli.screen import Cell

_INTENTS: Final = {
    "read": ("○", "read", "green"),
    "write": ("✎", "write", "yellow"),
    "destructive": ("✖", "destr", "red"),
}
_ASCII: Final = {"○": "r", "✎": "w", "✖": "!"}
_STATUSES: Final = {
    "success": "green",
    "error": "red",
    "blocked": "bold red",
    "warning": "yellow",
    "rejected": "magenta",
    "interrupted": "yellow",
}
_STATES: Final = {
    "ready": "green",
    "connecting": "cyan",
    "backing_off": "yellow",
    "needs_login": "yellow",
    "disabled": "dim",
    "quarantined": "magenta",
    "failed": "red",
    "disconnected": "dim",
}
_AGES: Final = ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h"), (14 * 86_400, 86_400, "d"))
_FULL: Final = "█"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def intent(operation: str | None) -> Cell:
    """A declared kind of operation: the word of seed 001, on a terminal with an icon."""
    if operation not in _INTENTS:
        return Cell("")
    icon, word, style = _INTENTS[operation]
    return Cell(word, f"{icon if _can_draw() else _ASCII[icon]} {word}", style)


def status(word: str) -> Cell:
    """What something came to."""
    return Cell(word, style=_STATUSES.get(word, ""))


def state(word: str) -> Cell:
    """Where a server stands."""
    return Cell(word, style=_STATES.get(word, ""))


def moment(iso: str | datetime | None) -> Cell:
    """A moment: exact in a pipe, on a terminal how long ago it was."""
    if iso is None:
        return Cell("")
    at = iso if isinstance(iso, datetime) else datetime.fromisoformat(iso)
    return Cell(at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), ago(at.timestamp()), "dim")


def ago(at: float, now: float | None = None) -> str:
    """How long ago a moment was, or the date where that says more."""
    seconds = (time.time() if now is None else now) - at
    if seconds < -1:
        return "in " + duration(-seconds * 1000)
    if seconds < 1:
        return "now"
    for limit, unit, letter in _AGES:
        if seconds < limit:
            return f"{int(seconds // unit)}{letter} ago"
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")


def duration(ms: float | None) -> str:
    """A length of time with two or three digits: 245ms, 1.2s, 2m 5s, 3h 20m."""
    if ms is None:
        return ""
    if ms < 1:
        return f"{ms:.1f}ms" if ms else "0ms"
    if ms < 999.5:
        return f"{ms:.0f}ms"
    seconds = ms / 1000
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"


def size(count: int) -> str:
    """A number of bytes."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 tool`, `1,204 tools`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def bar(share: float, width: int) -> str:
    """A bar that fills this share of the width, to an eighth of a character."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    if not _can_draw():
        return "#" * -(-eighths // 8)
    whole, rest = divmod(eighths, 8)
    return _FULL * whole + (_EIGHTHS[rest] if rest else "")


def _can_draw() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
