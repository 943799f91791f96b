"""Which records does a text query find? Those with all of its words in their tool, error or reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_QUERY_WORD: Final = re.compile(r"([^\W_]+)(\*?)")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_WORD: Final = 64
_MOST_WORDS: Final = 256
_MOST_QUERY_WORDS: Final = 20


def searchable(tool: str | None, *texts: str | None) -> str:
    """The words of a record, lower-cased, each once, between single spaces."""
    if not any(texts):
        return _joined_tool_words(tool) if tool else ""
    found = dict.fromkeys(_tool_words(tool)) if tool else {}
    for text in texts:
        if text:
            found.update(dict.fromkeys(_words(text)))
    return " ".join(found if len(found) <= _MOST_WORDS else list(found)[:_MOST_WORDS])


@lru_cache(4096)
def _tool_words(tool: str) -> list[str]:
    """The parts of a camel-case name are words too, beside the whole."""
    return _words(_HUMP.sub(" ", tool)) + _words(tool)


@lru_cache(4096)
def _joined_tool_words(tool: str) -> str:
    return " ".join(dict.fromkeys(_tool_words(tool)))


def _words(text: str) -> list[str]:
    words: list[str] = _WORD.findall(_folded(text))
    return words if len(text) <= _LONGEST_WORD else [word[:_LONGEST_WORD] for word in words]


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else text.casefold()


def query_words(query: str) -> list[tuple[str, bool]]:
    """The words of a query, each with whether it stands for all words that begin so (`creat*`)."""
    found = _QUERY_WORD.findall(_folded(query))
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
