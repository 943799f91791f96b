"""How well, how fast and for how many tokens does search find tools? `python -m bench.search [--quick]`."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from bench.search.ours import Ours
from bench.search.rivals import FullText, PlainBM25
from bench.search.sets import GOLDEN, SHARED, EvaluationSet, load_set, measures, public_sets
from bench.search.speed import print_lateness, print_speed
from bench.search.tokens import print_tokens

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.minilm import load_minilm

KEYS = ("ndcg@10", "recall@5", "recall@1")


class Retriever(Protocol):
    """Anything that finds tools."""

    def search(self, query: str, limit: int) -> list[str]:
        """The best ids."""
        ...


Factory = Callable[[Sequence[Document]], Retriever]


def evaluate(found: EvaluationSet, factory: Factory) -> dict[str, float]:
    """Mean measures of one retriever on one set, with build time and latency."""
    start = time.perf_counter()
    retriever = factory(found.documents)
    build = time.perf_counter() - start
    rows, times = [], []
    for query in found.queries:
        start = time.perf_counter()
        ids = retriever.search(query["query"], 10)
        times.append((time.perf_counter() - start) * 1e3)
        rows.append(measures(query, ids))
    means = {key: statistics.mean(row[key] for row in rows) for key in KEYS}
    return {**means, "build": build, "p50": statistics.median(times)}


def print_quality(factories: dict[str, Factory]) -> None:
    """Print one line per set and retriever, and the macro means."""
    sets = [*public_sets(), load_set(GOLDEN)]
    macro: dict[str, list[dict[str, float]]] = {name: [] for name in factories}
    print(
        f"{'set':16}{'tools':>7}{'queries':>9}  {'retriever':16}" + "".join(f"{key:>10}" for key in KEYS) + "   p50 ms"
    )
    for found in sets:
        for name, factory in factories.items():
            got = evaluate(found, factory)
            print(
                f"{found.name:16}{len(found.tools):>7}{len(found.queries):>9}  {name:16}"
                + "".join(f"{got[key]:>10.3f}" for key in KEYS)
                + f"{got['p50']:>9.2f}",
                flush=True,
            )
            if found.name != GOLDEN.name:
                macro[name].append(got)
    for name, rows in macro.items():
        if rows:
            means = "".join(f"{statistics.mean(row[key] for row in rows):>10.3f}" for key in KEYS)
            print(f"{'MACRO (public)':32}  {name:16}{means}")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="quality only, without the larger model")
    quick = parser.parse_args().quick
    if not SHARED.is_dir():
        print(f"{SHARED} is not there: only our own set is measured (set MCPPROXY_RETRIEVAL_SETS)")
    factories: dict[str, Factory] = {"FTS5, raw text": FullText, "BM25, stems": PlainBM25, "default": Ours}
    deep = None if quick else load_minilm()
    if deep is not None:
        factories["with the extra"] = lambda documents: Ours(documents, deep)
    print_quality(factories)
    if quick or not SHARED.is_dir():
        return
    print("\ncost of the default")
    print_speed(deep=False)
    if deep is not None:
        print("\ncost with the extra")
        print_speed(deep=True)
    print_lateness()
    print_tokens()


if __name__ == "__main__":
    main()
