"""What is it measured against? SQLite FTS5 on raw text, and a plain BM25 with stems and split names."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.words import query_text, terms


def raw_text(document: Document) -> str:
    """A tool as one text."""
    schema = json.dumps(document.input_schema, ensure_ascii=False)
    return f"{document.server} {document.name} {document.description} {schema}"


class FullText:
    """SQLite's FTS5 with its own tokenizer and its BM25."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._base = sqlite3.connect(":memory:")
        self._base.execute("CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, text)")
        self._base.executemany("INSERT INTO tools VALUES (?, ?)", ((d.id, raw_text(d)) for d in documents))

    def search(self, query: str, limit: int) -> list[str]:
        """The best ids."""
        words = [word for word in re.findall(r"\w+", query_text(query).lower()) if len(word) <= 40]
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        if not wanted:
            return []
        rows = self._base.execute("SELECT id FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?", (wanted, limit))
        return [row[0] for row in rows]


class PlainBM25:
    """BM25 over one field, k1 1.2 and b 0.75."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._ids = [document.id for document in documents]
        bags = [Counter(terms(raw_text(document))) for document in documents]
        mean = sum(map(Counter.total, bags)) / max(1, len(bags))
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for row, bag in enumerate(bags):
            damp = 1.2 * (1 - 0.75 + 0.75 * bag.total() / mean)
            for stem, count in bag.items():
                self._postings[stem].append((row, count * 2.2 / (count + damp)))

    def search(self, query: str, limit: int) -> list[str]:
        """The best ids."""
        scores: dict[int, float] = defaultdict(float)
        for stem in set(terms(query_text(query))):
            postings = self._postings.get(stem, [])
            rarity = math.log(1 + (len(self._ids) - len(postings) + 0.5) / (len(postings) + 0.5))
            for row, amount in postings:
                scores[row] += rarity * amount
        best = sorted(scores.items(), key=lambda item: -item[1])[:limit]
        return [self._ids[row] for row, _ in best]
