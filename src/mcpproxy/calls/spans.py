"""Where in these bytes do the members of a JSON object stand? For the few results that must be changed in place."""

from __future__ import annotations

import json
import re
from typing import NamedTuple, NoReturn

MAX_MEMBERS = 1000
"""No result has more than a handful; a million of them would hold up every other call."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# Only the places of values matter: as floats, integers of any length are read without complaint.
_decoder = json.JSONDecoder(parse_int=float, parse_constant=_refuse)
_SPACE = re.compile(r"[ \t\n\r]*")


class Span(NamedTuple):
    """One member's value, from its first character to behind its last; `key` is where the member itself begins."""

    key: int
    start: int
    end: int


def members(text: str) -> dict[str, Span]:
    """The members of a JSON object by name; of two with the same name the last counts. Raises ValueError."""
    found: dict[str, Span] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise ValueError("not a JSON object")
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return _ended(text, at + 1, found)
    for _ in range(MAX_MEMBERS):
        key_at = at
        if text[at : at + 1] != '"':
            raise ValueError("a member has no name")
        name, at = _decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("a member has no value")
        start = _skip(text, at + 1)
        try:
            _, end = _decoder.raw_decode(text, start)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        found[name] = Span(key_at, start, end)
        at = _skip(text, end)
        if text[at : at + 1] == "}":
            return _ended(text, at + 1, found)
        if text[at : at + 1] != ",":
            raise ValueError("two members are not parted by a comma")
        at = _skip(text, at + 1)
    raise ValueError(f"it has more than {MAX_MEMBERS} members")


def _ended(text: str, at: int, found: dict[str, Span]) -> dict[str, Span]:
    if _skip(text, at) != len(text):
        raise ValueError("something follows the object")
    return found


def elements(text: str, most: int) -> tuple[list[str], bool]:
    """The first elements of a JSON array as they were written, and whether there are more. Raises ValueError."""
    found: list[str] = []
    at = _skip(text, _skip(text, 0) + 1)
    for _ in range(most):
        try:
            _, end = _decoder.raw_decode(text, at)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        found.append(text[at:end])
        at = _skip(text, end)
        if text[at : at + 1] != ",":
            return found, False
        at = _skip(text, at + 1)
    return found, True


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty string everywhere


def replaced(text: str, span: Span, value: str) -> str:
    """The same object with another value for one member, all else untouched."""
    return text[: span.start] + value + text[span.end :]


def without(text: str, span: Span) -> str:
    """The same object without one member, all else untouched."""
    before, after = text[: span.key].rstrip(), text[span.end :].lstrip()
    if after.startswith(","):
        return before + after[1:].lstrip()
    return before.removesuffix(",") + after
