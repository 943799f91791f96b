"""What does somebody want done? Five kinds of doing, told from the first verb of a sentence and from a tool's name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.words import fold, split, stem, terms

READ, CREATE, UPDATE, DELETE, SEND = 1, 2, 4, 8, 16
ALL = READ | CREATE | UPDATE | DELETE | SEND

_WORDS = {
    READ: "get list show read fetch retrieve find search query look view check describe lookup display tell give "
    "provide browse count inspect see open",
    CREATE: "create add new make insert generate register open build write save compose draft start store record "
    "remember keep persist",
    UPDATE: "update edit modify change set rename replace patch adjust move assign",
    DELETE: "delete remove destroy drop erase purge uninstall clear cancel revoke unsubscribe discard wipe",
    SEND: "send post publish submit share notify reply",
}
NAME_WORDS = 3
"""A tool says what it does at the start of its name; later words are what it does it to."""
SAID = 200
"""Characters of a description that are looked at for its first word."""

_QUESTION = re.compile(
    r"\W*(what|which|who|whose|where|is|are|was|were|does|did|how (many|much|long|far|often))\b", re.I
)


def kinds_of_query(sentences: Iterable[str]) -> int:
    """The kinds of doing that a request's sentences speak of, as a set of bits: one kind a sentence.

    The first verb is the wish. What follows tells of the things: "show what I added and changed" asks to read.
    """
    kinds = 0
    for sentence in sentences:
        if _QUESTION.match(sentence):
            kinds |= READ
        else:
            kinds |= _first(map(stem, split(fold(sentence))))
    return kinds


def kinds_of_tool(document: Document) -> int:
    """The kinds of doing a tool's name speaks of; else its description's first word, else its hints."""
    table = _table()
    kinds = 0
    for one in terms(document.name)[:NAME_WORDS]:
        kinds |= table.get(one, 0)
    kinds = kinds or _first(terms(document.description[:SAID])[:1])
    if kinds:
        return kinds
    if document.destructive:
        return DELETE
    return READ if document.read_only else 0


def _first(stems: Iterable[str]) -> int:
    table = _table()
    return next((table[one] for one in stems if one in table), 0)


@lru_cache(maxsize=1)
def _table() -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, words in _WORDS.items():
        for word in words.split():
            found[stem(word)] = found.get(stem(word), 0) | kind
    return found
