"""How is a value written for a person? Times, spans, numbers and JSON, and text that nobody vouches for."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from markupsafe import Markup, escape

from mcpproxy.catalog.shown import is_hidden

_PARTS: Final = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_OPENING: Final = {"{": "}", "[": "]"}
_LONGEST_PRETTY: Final = 300_000
_INDENT: Final = "  "
_UNSEEN: Final = Markup('<span class="unseen" title="A character that is not seen">U+{:04X}</span>')


def moment(value: datetime | float) -> Markup:
    """A time, in UTC until the page's script puts it into the reader's zone."""
    at = value if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)
    iso = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Markup('<time datetime="{}">{} UTC</time>').format(iso, at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"))


def span(seconds: float) -> str:
    """A length of time to the precision that a person wants: `12 s`, `3 min`, `5 h`, `2 days`."""
    if seconds < 100:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"


def took(milliseconds: float | None) -> str:
    """How long a call took."""
    if milliseconds is None:
        return ""
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 100_000 else span(milliseconds / 1000)


def count(number: float) -> str:
    """A number with its thousands apart."""
    return f"{number:,.0f}"


def share(part: float, whole: float) -> str:
    """A part of a whole in per cent; something is never shown as nothing."""
    if not whole or not part:
        return "0 %"
    percent = 100 * part / whole
    return "< 0.1 %" if percent < 0.1 else f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def visible(text: object) -> Markup:
    """Text of an upstream or an agent: escaped, with every character shown that a reader would not see."""
    parts = []
    for unseen, run in groupby(str(text), key=_is_unseen):
        chars = "".join(run)
        parts += [_UNSEEN.format(ord(char)) for char in chars] if unseen else [escape(chars)]
    return Markup("").join(parts)


def _is_unseen(char: str) -> bool:
    return char not in "\n\t" and is_hidden(char)


def pretty(data: bytes | str) -> str:
    """JSON over several lines, each number and text as it was written; what is not JSON stays as it is."""
    text = data if isinstance(data, str) else data.decode(errors="replace")
    if len(text) > _LONGEST_PRETTY or not _is_json(text):
        return text
    written: list[str] = []
    closing: list[str] = []
    parts = _PARTS.findall(text)
    for before, part, after in zip(["", *parts], parts, [*parts[1:], ""], strict=False):
        if part in _OPENING:
            closing.append(_OPENING[part])
            written += (part, "" if after == closing[-1] else _new_line(closing))
        elif closing and part == closing[-1]:
            closing.pop()
            written += ("" if before in _OPENING else _new_line(closing), part)
        elif part == ",":
            written += (part, _new_line(closing))
        else:
            written.append(": " if part == ":" else part)
    return "".join(written)


def _new_line(closing: list[str]) -> str:
    return "\n" + _INDENT * len(closing)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
