"""How is text that nobody vouches for shown on a terminal? Without anything that a terminal or rich would obey.

Servers, agents and files of other programs write most of what commands print. Escape sequences could move the cursor,
rewrite what stands above, set the window's title or the clipboard; direction marks could show words in another order.
All of that goes. Markup is never read: what we print goes to rich as plain text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SEQUENCES: Final = re.compile(
    r"""
      (?:\x1b\[|\x9b) [0-?]* [ -/]* [@-~]                              # CSI: colours, cursor, erasing
    | (?:\x1b\]|\x9d) [^\x07\x1b\x9c]* (?:\x07|\x1b\\|\x9c)            # OSC: title, links, clipboard
    | (?:\x1b[PX^_]|[\x90\x98\x9e\x9f]) [^\x1b\x9c]* (?:\x1b\\|\x9c)   # DCS, SOS, PM, APC
    | \x1b [ -/]* [0-~]                                                # two- and three-character sequences
    """,
    re.VERBOSE,
)
# Control, format (direction, zero width, tags), half characters, private use, unassigned, line and paragraph ends.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Drawn as nothing, though their category says letter or mark.
_BLANK: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f")


def clean(text: str) -> str:
    """The text on one line, harmless."""
    return " ".join(_harmless(text, keep="").split())


def clean_lines(text: str) -> str:
    """The text with its line ends and indentation, harmless."""
    return _harmless(text.replace("\r\n", "\n").expandtabs(4), keep="\n")


def escaped_json(text: str) -> str:
    """JSON in which every character that a terminal might obey is written as `\\u009b`; it means the same."""
    if _is_plain(text):
        return text
    return "".join(char if char == "\n" or not _is_hidden(char) else _escape(char) for char in text)


def _harmless(text: str, keep: str) -> str:
    if _is_plain(text):
        return text
    text = _SEQUENCES.sub("", text)
    return "".join(" " if char in "\n\t\r" and char not in keep else char for char in text if _stays(char))


def _is_plain(text: str) -> bool:
    return text.isprintable() and (text.isascii() or _BLANK.isdisjoint(text))


def _stays(char: str) -> bool:
    return char in "\n\t\r" or not _is_hidden(char)


def _is_hidden(char: str) -> bool:
    if " " <= char <= "~":
        return False
    return unicodedata.category(char) in _HIDDEN or char in _BLANK


def _escape(char: str) -> str:
    code = ord(char)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
