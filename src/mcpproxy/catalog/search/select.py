"""Which tools are shown, and with what score? The hits of a ranking that the caller may see, best first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcpproxy.catalog.search.rank import Ranking
from mcpproxy.catalog.search.semantic import Floats

USAGE = 0.1
"""What heavy use adds to a tool's total, in standard deviations: enough to settle a near tie, no more."""
FALL = 8.0
"""How far behind the best, in standard deviations, a tool's score has fallen to about a third."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One tool that answers a query."""

    id: str
    score: float
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The best tools, and how many there are in all."""

    best: tuple[Hit, ...] = ()
    total: int = 0


def select(
    ranking: Ranking,
    limit: int,
    allow: Callable[[str], bool] | None = None,
    usage: Mapping[str, int] | None = None,
) -> Hits:
    """Take the best hits that `allow` lets through; `usage` counts calls by id."""
    ids = ranking.snapshot.ids
    rows = np.flatnonzero(ranking.hit)
    if allow is not None:
        rows = rows[[allow(ids[row]) for row in rows]] if len(rows) else rows
    if not len(rows) or limit < 1:
        return Hits((), len(rows))
    total = ranking.total[rows]
    if usage:
        most = math.log1p(max(1, *usage.values()))
        added = [USAGE * math.log1p(max(0, usage.get(ids[row], 0))) / most for row in rows]
        total = total + np.array(added, np.float32)
    best = _best(total, limit)
    plain = next((at for at in best if int(rows[at]) not in ranking.exact), best[0])
    top, high = _quality(ranking, int(rows[plain])), float(total[plain])
    hits = []
    for at in best:
        row = int(rows[at])
        score = 1.0 if row in ranking.exact else top * math.exp((float(total[at]) - high) / FALL)
        hits.append(Hit(ids[row], round(score, 4)))
    return Hits(tuple(hits), len(rows))


def _best(total: Floats, limit: int) -> NDArray[np.int64]:
    """Positions of the highest totals. Equal ones keep the order of the ids: the same question, the same answer."""
    if len(total) > 4 * limit:
        edge = np.partition(total, len(total) - limit)[len(total) - limit]
        near = np.flatnonzero(total >= edge)
    else:
        near = np.arange(len(total))
    return near[np.argsort(-total[near], kind="stable")][:limit]


def _quality(ranking: Ranking, row: int) -> float:
    """How good the best hit is in itself: how much of the query it holds, or how near its meaning is."""
    possible = sum(weight * ranking.snapshot.lexicon.rarity(stem) for stem, weight in ranking.wanted.items())
    held = min(1.0, 1.5 * float(ranking.words[row]) / possible) if possible > 0 else 0.0
    near = min(1.0, max(0.0, float(ranking.meaning[row])))
    return min(0.99, 1 - (1 - held) * (1 - near))
