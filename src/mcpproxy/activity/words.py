"""Which records does a text query find? Those with all of its words in their tool, error or reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_QUERY_WORD: Final = re.compile(r"([^\W_]+)(\*?)")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_WORD: Final = 64
_MOST_WORDS: Final = 256
_MOST_QUERY_WORDS: Final = 20


def searchable(tool: str | None, *texts: str | None) -> str:
    """The words of a record, lower-cased, each once, between single spaces."""
    found: dict[str, None] = {}
    if tool:
        # The parts of a camel-case name are words too, beside the whole.
        _collect(_HUMP.sub(" ", tool), found)
        _collect(tool, found)
    for text in texts:
        if text:
            _collect(text, found)
    return " ".join(list(found)[:_MOST_WORDS])


def _collect(text: str, found: dict[str, None]) -> None:
    for word in _WORD.findall(text.lower() if text.isascii() else text.casefold()):
        found[word[:_LONGEST_WORD]] = None


def query_words(query: str) -> list[tuple[str, bool]]:
    """The words of a query, each with whether it stands for all words that begin so (`creat*`)."""
    found = _QUERY_WORD.findall(query.lower() if query.isascii() else query.casefold())
    return [(word[:_LONGEST_WORD], bool(star)) for word, star in found[:_MOST_QUERY_WORDS]]


def fts5_match(words: Iterable[tuple[str, bool]]) -> str:
    """The query for SQLite; words hold letters and digits only, so nothing in them is syntax."""
    return " AND ".join(f'"{word}"*' if begins else f'"{word}"' for word, begins in words)


def tsquery(words: Iterable[tuple[str, bool]]) -> str:
    """The query for PostgreSQL; the words are lexemes already."""
    return " & ".join(f"'{word}':*" if begins else f"'{word}'" for word, begins in words)


def like_patterns(words: Iterable[tuple[str, bool]]) -> list[str]:
    """One LIKE pattern per word, to hold against the searchable text between two spaces."""
    return [f"% {word}%" if begins else f"% {word} %" for word, begins in words]
