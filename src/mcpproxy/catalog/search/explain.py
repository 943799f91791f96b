"""Why did a tool rank where it did, or not appear at all? The evidence for one tool, piece by piece, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcpproxy.arrays import np
from mcpproxy.catalog.search.document import Document, fields_of
from mcpproxy.catalog.search.explanation import Explanation, Match, absent
from mcpproxy.catalog.search.lexical import FIELDS, SATURATION, contributions_of
from mcpproxy.catalog.search.rank import Ranking
from mcpproxy.catalog.search.select import usage_of
from mcpproxy.catalog.search.semantic import Floats


def explain(
    ranking: Ranking,
    document: Document,
    *,
    limit: int,
    allow: Callable[[str], bool] | None = None,
    usage: Mapping[str, int] | None = None,
) -> Explanation:
    """Explain the standing of one tool; `allow` and `usage` are those of the search."""
    ids = ranking.snapshot.ids
    if document.id not in ids:
        return absent(document.id, "it is not in the index (yet)")
    row = ids.index(document.id)
    added = usage_of(ranking.snapshot, usage or {})
    rank = _rank(ranking, ranking.total + added, row, allow)
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
        evidence={name: round(float(values[row]), 3) for name, values in {**ranking.parts, "usage": added}.items()},
        matches=_matches(ranking, document),
    )


def _rank(ranking: Ranking, total: Floats, row: int, allow: Callable[[str], bool] | None) -> int | None:
    if not ranking.hit[row]:
        return None
    ids = ranking.snapshot.ids
    ahead = np.flatnonzero(ranking.hit & (total > total[row]))
    equal = np.flatnonzero(ranking.hit[:row] & (total[:row] == total[row]))
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
