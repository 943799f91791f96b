"""Which tools are shown, and with what score? The hits of a ranking that the caller may see, best first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mcpproxy.arrays import NDArray, np
from mcpproxy.catalog.search.rank import Ranking
from mcpproxy.catalog.search.semantic import Floats
from mcpproxy.catalog.search.snapshot import Snapshot

USAGE = 0.3
"""What heavy use adds to a tool's total, in standard deviations: enough to settle a near tie, no more."""
COUNTED = 200
"""Hits beyond this are not counted: nobody reads them, and each costs a look at the caller's rights."""
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
    """The best tools, and how many there are in all (counted up to `COUNTED`)."""

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
    total = ranking.total
    if usage:
        total = total + usage_of(ranking.snapshot, usage)
    allowed = (row for row in _in_order(total, ranking.hit) if allow is None or allow(ids[row]))
    seen = list(itertools.islice(allowed, max(limit, COUNTED)))
    best = seen[: max(limit, 0)]
    plain = next((row for row in best if row not in ranking.exact), None)
    top = _quality(ranking, plain) if plain is not None else 0.0
    hits = []
    for row in best:
        behind = float(total[row] - total[plain]) if plain is not None else 0.0
        hits.append(Hit(ids[row], 1.0 if row in ranking.exact else round(top * math.exp(behind / FALL), 4)))
    return Hits(tuple(hits), len(seen))


def _in_order(total: Floats, hit: NDArray[np.bool_]) -> Iterator[int]:
    """Rows of hits, highest total first; equal ones in the order of ids, so that the same question has one answer."""
    rows = np.flatnonzero(hit)
    if len(rows) > 2 * COUNTED:
        # Most callers stop early: only the front is sorted until somebody wants more.
        edge = np.partition(total[rows], len(rows) - COUNTED)[len(rows) - COUNTED]
        front = total[rows] >= edge
        yield from _sorted(total, rows[front])
        rows = rows[~front]
    yield from _sorted(total, rows)


def _sorted(total: Floats, rows: NDArray[np.intp]) -> list[int]:
    order: list[int] = rows[np.argsort(-total[rows], kind="stable")].tolist()
    return order


def usage_of(snapshot: Snapshot, usage: Mapping[str, int]) -> Floats:
    """What being called often adds to each tool's total."""
    most = math.log1p(max((1, *usage.values())))
    added: Floats = np.zeros(len(snapshot), np.float32)
    for tool_id, count in usage.items():
        for row in snapshot.named.get(tool_id.lower(), ()):
            if snapshot.ids[row] == tool_id:
                added[row] = USAGE * math.log1p(max(0, count)) / most
    return added


def _quality(ranking: Ranking, row: int) -> float:
    """How good the best hit is in itself: how much of the query it holds, or how near its meaning is."""
    possible = sum(weight * ranking.snapshot.lexicon.rarity(stem) for stem, weight in ranking.wanted.items())
    held = min(1.0, 1.5 * float(ranking.words[row]) / possible) if possible > 0 else 0.0
    near = min(1.0, max(0.0, float(ranking.meaning[row])))
    return min(0.99, 1 - (1 - held) * (1 - near))
