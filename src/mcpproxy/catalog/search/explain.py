"""Why did a tool rank where it did, or not appear at all? The evidence for one tool, piece by piece, in plain words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcpproxy.catalog.search.arrays import np
from mcpproxy.catalog.search.document import Document, fields_of
from mcpproxy.catalog.search.lexical import FIELDS, SATURATION, contributions_of
from mcpproxy.catalog.search.rank import Ranking

EVIDENCE = {
    "words": "words of the query in the tool's text",
    "meaning": "nearness in meaning",
    "sentences": "one sentence of the query fits better than the whole",
    "name": "the query says the tool's name",
    "verb": "the same kind of doing (read, create, update, delete, send)",
    "server": "the other tools of the server fit too",
}


@dataclass(frozen=True, slots=True)
class Match:
    """One stem of the query that the tool holds."""

    stem: str
    because: str
    """`query`, `synonym` or `repair of …`"""
    rarity: float
    fields: dict[str, float]
    """What each field gave, in points of the word score."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The standing of one tool for one query."""

    id: str
    shown: bool
    reason: str
    """Why it is shown, or why not."""
    rank: int | None
    """Its place among the tools the caller may see, from 1; None where it is not a hit."""
    exact: bool
    similarity: float | None
    evidence: dict[str, float]
    """What each kind of evidence adds to the total, in standard deviations; the keys stand in `EVIDENCE`."""
    matches: tuple[Match, ...]


def explain(
    ranking: Ranking,
    document: Document,
    *,
    limit: int,
    allow: Callable[[str], bool] | None = None,
    hidden: str | None = None,
) -> Explanation:
    """Explain the standing of one tool; `hidden` is the caller's reason to hide it (disabled, quarantined, …)."""
    ids = ranking.snapshot.ids
    row = ids.index(document.id) if document.id in ids else None
    if hidden is not None:
        return _absent(document, f"not shown: {hidden}")
    if row is None:
        return _absent(document, "not shown: it is not in the index (yet)")
    matches = _matches(ranking, document)
    rank = _rank(ranking, row, allow)
    if rank is None:
        reason = "not shown: no word of the query stands in it, and its meaning is not near enough"
    elif rank > limit:
        reason = f"not shown: it ranks {rank}, and the answer holds {limit}"
    elif row in ranking.exact:
        reason = "shown first: the query is or names its exact name"
    else:
        reason = f"shown at rank {rank}"
    return Explanation(
        id=document.id,
        shown=rank is not None and rank <= limit,
        reason=reason,
        rank=rank,
        exact=row in ranking.exact,
        similarity=round(float(ranking.meaning[row]), 4),
        evidence={name: round(float(values[row]), 3) for name, values in ranking.parts.items()},
        matches=matches,
    )


def _absent(document: Document, reason: str) -> Explanation:
    return Explanation(document.id, False, reason, None, False, None, {}, ())


def _rank(ranking: Ranking, row: int, allow: Callable[[str], bool] | None) -> int | None:
    if not ranking.hit[row]:
        return None
    ids = ranking.snapshot.ids
    ahead = np.flatnonzero(ranking.hit & (ranking.total > ranking.total[row]))
    equal = np.flatnonzero(ranking.hit[:row] & (ranking.total[:row] == ranking.total[row]))
    return 1 + sum(1 for other in (*ahead, *equal) if allow is None or allow(ids[other]))


def _matches(ranking: Ranking, document: Document) -> tuple[Match, ...]:
    given = contributions_of(fields_of(document))
    found = []
    for stem, weight in ranking.weights.items():
        amounts = {field.name: given[field.name].get(stem, 0.0) for field in FIELDS}
        total = sum(amounts.values())
        if total <= 0:
            continue
        rarity = ranking.snapshot.lexicon.rarity(stem)
        points = weight * rarity / (SATURATION + total)
        shares = {name: round(amount * points, 3) for name, amount in amounts.items() if amount > 0}
        found.append(Match(stem, _because(ranking, stem), round(rarity, 3), shares))
    return tuple(sorted(found, key=lambda match: -sum(match.fields.values())))


def _because(ranking: Ranking, stem: str) -> str:
    if stem in ranking.query.stems:
        return "query"
    for typed, repaired in ranking.repairs.items():
        if stem in repaired:
            return f"repair of {typed}"
    return "synonym"
