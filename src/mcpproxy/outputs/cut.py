"""Where may a long text be cut so that each piece still reads? At a record, a line or a word, in this order."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Kind = Literal["json_array", "json_object", "json_lines", "text"]

_SKIP = msgspec.json.Decoder(msgspec.Raw)
# A string, also one that the window cuts off, or a mark of structure. Possessive: it cannot backtrack.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{},]', re.DOTALL)
_NESTING = {"[": 1, "{": 1, "]": -1, "}": -1}


class Cut(msgspec.Struct, frozen=True):
    """The first piece of a text that was too long; the rest begins at `offset`."""

    head: str
    offset: int
    total: int
    kind: Kind


def cut(text: str, limit: int) -> Cut | None:
    """Cut a text of more than `limit` characters; None where it fits or the limit is 0."""
    if not 0 < limit < len(text):
        return None
    kind = kind_of(text)
    head, _ = page(text, 0, limit, kind)
    return Cut(head=head, offset=len(head), total=len(text), kind=kind)


def page(text: str, offset: int, limit: int, kind: Kind | None = None) -> tuple[str, int | None]:
    """Return at most `limit` characters from `offset`, and where the next piece begins, None at the end.

    The pieces together are the text, character for character. Pass the `kind` of the first cut to save
    finding it again.
    """
    offset, limit = max(offset, 0), max(limit, 1)
    if offset + limit >= len(text):
        return text[offset:], None
    window = text[offset : offset + limit]
    length = _boundary(window, kind or kind_of(text))
    return window[:length], offset + length


def kind_of(text: str) -> Kind:
    """Say what a text is, by its beginning and by whether it is JSON throughout."""
    start = text.lstrip()[:1]
    if start not in ("[", "{"):
        return "text"
    first_line, _, rest = text.lstrip().partition("\n")
    if rest.lstrip()[:1] in ("[", "{") and _is_json(first_line):
        return "json_lines"
    if not _is_json(text):
        return "text"
    return "json_array" if start == "[" else "json_object"


def _is_json(text: str) -> bool:
    try:
        _SKIP.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _boundary(window: str, kind: Kind) -> int:
    """Find where to cut. A piece is at least half of what it may be: small ones cost more than they tell."""
    half = len(window) // 2
    ends = [_line_end(window)] if kind == "json_lines" else []
    if kind != "text":
        ends.append(_record_end(window, half))
    ends += [_line_end(window), window.rfind(" ") + 1]
    return next((end for end in ends if end > half), len(window))


def _line_end(window: str) -> int:
    return window.rfind("\n") + 1


def _record_end(window: str, half: int) -> int:
    """Find the last comma of the outermost level that has one in the second half."""
    level = 0
    last: dict[int, int] = {}
    for token in _TOKEN.finditer(window):
        mark = token[0]
        if mark == ",":
            last[level] = token.end()
        else:
            level += _NESTING.get(mark, 0)
    return next((last[level] for level in sorted(last) if last[level] > half), 0)
