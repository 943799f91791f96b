"""How is text that nobody vouches for shown to a person? Every trick in it made visible, and none of it obeyed."""

from __future__ import annotations

import re
import unicodedata

_PLAIN = re.compile(r"[ -~]*")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Drawn as nothing, though their category says letter or mark.
_BLANK = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f") | {chr(code) for code in range(0xFE00, 0xFE10)}
_VARIATIONS = range(0xE0100, 0xE01F0)


def is_hidden(char: str) -> bool:
    """Whether a reader would not see this character, or would see others in another order because of it."""
    if " " <= char <= "~":
        return False
    return unicodedata.category(char) in _HIDDEN_CATEGORIES or char in _BLANK or ord(char) in _VARIATIONS


def escaped(text: str, limit: int | None = None) -> str:
    """The text on one line with every hidden character written as `\\u{200b}`, cut to about `limit` characters."""
    cut = limit is not None and len(text) > limit
    if cut:
        text = text[:limit]
    if not _PLAIN.fullmatch(text):
        text = "".join(_visible(char) for char in text)
    return f"{text}…" if cut else text


def _visible(char: str) -> str:
    if char == "\n":
        return "\\n"
    if char == "\t":
        return "\\t"
    return f"\\u{{{ord(char):x}}}" if is_hidden(char) or not char.isprintable() else char
