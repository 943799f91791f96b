"""Which known pieces make up a word? BERT's WordPiece over its uncased vocabulary, shared by both encoders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from mcpproxy.catalog.search.words import MAX_WORD, fold, stem

UNKNOWN, FIRST, LAST = 100, 101, 102
"""Ids of [UNK], [CLS] and [SEP] in the vocabulary."""

_IDEOGRAPH = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
_TOKEN = re.compile(rf"{_IDEOGRAPH}|[^\W_]+?(?={_IDEOGRAPH}|[\W_]|$)|[^\w\s]|_")


class WordPiece:
    """Words to piece ids, longest piece first."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(vocabulary)
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        # Words repeat across tools; the bound keeps a hostile catalogue from growing this without end.
        self._pieces = lru_cache(maxsize=16384)(self._look_up)

    def knows(self, word: str) -> bool:
        """Whether the lower-case word is in the vocabulary whole, which makes it a real word and no typing error."""
        return word in self._ids

    def wholes(self, stem_: str) -> list[str]:
        """Whole words of the vocabulary that have this stem, as far as the usual endings reach."""
        changed = [stem_[:-1] + "y"] if stem_.endswith("i") else []
        tried = [stem_, *changed, *(stem_ + ending for ending in ("e", "s", "ion", "ing", "ed", "er"))]
        return [word for word in tried if word in self._ids and stem(word) == stem_]

    def ids(self, words: Iterable[str]) -> list[int]:
        """The pieces of lower-case words; characters outside the vocabulary are left out."""
        return [number for word in words for number in self._pieces(word) if number != UNKNOWN]

    def sequence(self, text: str, limit: int) -> list[int]:
        """The input of a BERT model for a text: punctuation kept, framed, and cut at `limit` pieces."""
        found: list[int] = [FIRST]
        for token in _TOKEN.findall(fold(text).lower()):
            found.extend(self._pieces(token))
            if len(found) >= limit:
                break
        return [*found[: limit - 1], LAST]

    def _look_up(self, word: str) -> tuple[int, ...]:
        if len(word) > 2 * MAX_WORD:
            return (UNKNOWN,)
        found: list[int] = []
        start = 0
        while start < len(word):
            end = len(word)
            prefix = "##" if start else ""
            while end > start and prefix + word[start:end] not in self._ids:
                end -= 1
            if end == start:
                return (UNKNOWN,)
            found.append(self._ids[prefix + word[start:end]])
            start = end
        return tuple(found)
