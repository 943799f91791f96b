"""How near is each tool to what a query means? Word vectors for all of them, the larger model for the likeliest."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mcpproxy.arrays import NDArray, np
from mcpproxy.catalog.search.semantic import Floats, static_encoder, word_pieces
from mcpproxy.catalog.search.snapshot import Snapshot
from mcpproxy.catalog.search.words import STOP, fold, stem

RARITY = 0.15
"""How much more a rare word of the query weighs in its vector: the power of its rarity among the tools."""
FLOOR, DEEP_FLOOR = 0.22, 0.24
"""The similarity from which a tool is a hit although no word of the query stands in it, in a small catalogue."""
DEEP_SHARE = 0.65
"""The larger model's part of the meaning; word vectors keep the rest, for the two err on different queries."""
CANDIDATES = 1000
"""Tools that the larger model's vector is held against, the likeliest first: for all of 10,000 nothing was gained."""
KNOWN = 0.3
"""The part of a query's words that must be words of the language before its meaning alone can bring a hit."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near every tool is."""

    whole: Floats
    """To the whole query, in standard deviations."""
    sentences: Floats
    """To each of its sentences, as cosine similarity, one column each."""
    similar: Floats
    """Cosine similarity to the query or to its nearest sentence: what is shown and told."""
    hit: NDArray[np.bool_]
    """Near enough to be a hit without a common word."""


def by_words(snapshot: Snapshot, texts: Sequence[str], words: Collection[str]) -> Nearness:
    """Nearness by word vectors; `texts` are the query and its sentences, `words` the words of the query."""
    near = snapshot.vectors @ static_encoder().queries(texts, _weigher(snapshot)).T
    similar: Floats = near.max(axis=1, initial=-1.0)
    return Nearness(z(near[:, 0]), near[:, 1:], similar, similar >= _floor(FLOOR, len(snapshot), words))


def by_model(snapshot: Snapshot, query: Floats, words: Collection[str], near: Nearness, order: Floats) -> Nearness:
    """Nearness to the larger model's vector too, for the tools first in `order`; the others count as average."""
    assert snapshot.deep is not None
    usual = snapshot.deep[:: max(1, len(snapshot) // CANDIDATES)] @ query
    rows = likeliest(order, CANDIDATES)
    found = snapshot.deep[rows] @ query
    whole, similar, hit = (1 - DEEP_SHARE) * near.whole, near.similar.copy(), near.hit.copy()
    whole[rows] += DEEP_SHARE * (found - usual.mean()) / max(float(usual.std()), 1e-6)
    similar[rows] = found
    hit[rows] |= found >= _floor(DEEP_FLOOR, len(snapshot), words)
    return Nearness(whole, near.sentences, similar, hit)


def likeliest(order: Floats, count: int) -> NDArray[np.intp]:
    """The rows of the highest values, in no order."""
    return np.argpartition(order, -count)[-count:] if count < len(order) else np.arange(len(order))


def z(values: Floats) -> Floats:
    """Distance from the mean in standard deviations; all zero where nothing tells the tools apart."""
    if not len(values):
        return values
    apart: Floats = values - values.mean()
    spread = float(np.sqrt(apart @ apart / len(apart)))
    return apart / np.float32(spread) if spread > 1e-6 else np.zeros_like(values)


def mend(text: str, repairs: dict[str, list[str]]) -> str:
    """The text with its misspelt words put right: pieces of a misspelt word mean nothing."""
    if not repairs:
        return text
    pieces = word_pieces()
    right = {
        typed: next((whole for one in near for whole in pieces.wholes(one)), "") for typed, near in repairs.items()
    }
    return re.sub(r"[^\W\d_]+", lambda word: right.get(stem(fold(word[0]).lower()), "") or word[0], text)


def _weigher(snapshot: Snapshot) -> Callable[[str], float]:
    """How much a word counts in a query's vector: "file" says little where every tool is about files."""
    lexicon = snapshot.lexicon
    most = lexicon.rarity("")

    def weigh(word: str) -> float:
        return 1.0 if word in STOP else max(0.05, lexicon.rarity(stem(word)) / most) ** RARITY

    return weigh


def _floor(lowest: float, tools: int, words: Collection[str]) -> float:
    """The similarity that cannot be chance: among more tools, chance comes nearer. Made-up words mean nothing."""
    pieces = word_pieces()
    asked = [word for word in words if word not in STOP]
    known = [word for word in asked if len(word) > 2 and (pieces.knows(word) or pieces.wholes(stem(word)))]
    if len(known) < KNOWN * len(asked):
        return math.inf
    return max(lowest, lowest - 0.08 + 0.06 * math.log10(max(tools, 1)))
