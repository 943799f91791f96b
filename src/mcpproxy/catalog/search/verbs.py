"""What does somebody want done? Five kinds of doing, told from the verbs of a query and of a tool's name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.words import stem, terms

READ, CREATE, UPDATE, DELETE, SEND = 1, 2, 4, 8, 16
ALL = READ | CREATE | UPDATE | DELETE | SEND

_WORDS = {
    READ: "get list show read fetch retrieve find search query look view check describe lookup display tell give "
    "provide browse count inspect",
    CREATE: "create add new make insert generate register open build write save compose draft start",
    UPDATE: "update edit modify change set rename replace patch adjust move assign",
    DELETE: "delete remove destroy drop erase purge uninstall clear cancel revoke unsubscribe discard wipe",
    SEND: "send post publish submit share notify reply email message",
}
NAME_WORDS = 3
"""A tool says what it does at the start of its name; later words are what it does it to."""


def kinds_of_query(stems: Iterable[str]) -> int:
    """The kinds of doing that a query's stems speak of, as a set of bits."""
    table = _table()
    kinds = 0
    for one in stems:
        kinds |= table.get(one, 0)
    return kinds


def kinds_of_tool(document: Document) -> int:
    """The kinds of doing a tool's name speaks of; its hints speak where the name does not."""
    kinds = kinds_of_query(terms(document.name)[:NAME_WORDS])
    if document.destructive and not kinds:
        return DELETE
    if document.read_only and not kinds:
        return READ
    return kinds


@lru_cache(maxsize=1)
def _table() -> dict[str, int]:
    return {stem(word): kind for kind, words in _WORDS.items() for word in words.split()}
