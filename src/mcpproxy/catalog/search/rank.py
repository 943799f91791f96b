"""In which order do tools answer a query? Words and meaning as z-scores, then the evidence around them, in one sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcpproxy.arrays import NDArray, np
from mcpproxy.catalog.search.meaning import by_model, by_words, mend, z
from mcpproxy.catalog.search.query import Query, read_query, weigh
from mcpproxy.catalog.search.semantic import Encoder, Floats, word_pieces
from mcpproxy.catalog.search.snapshot import Snapshot
from mcpproxy.catalog.search.verbs import ALL, kinds_of_query
from mcpproxy.catalog.search.words import fold, name_stems, split, stem, terms


@dataclass(frozen=True, slots=True)
class Tuning:
    """How much each kind of evidence counts. `docs/search.md` tells how the values were found and checked."""

    meaning_short: float = 4.0
    """Weight of meaning against words in a short query, in which every word is a guess at the tool's own."""
    meaning_long: float = 0.8
    """The same in a long one, whose vector blurs over several needs while its words stay sharp."""
    covered: float = 0.2
    """The coverage by words at which a short query has just that weight: meaning counts more below, less above."""
    turn: float = 15.0
    """The number of stems halfway between short and long."""
    sentences: float = 0.4
    phrase: float = 3.0
    verbs: float = 0.5
    """In standard deviations of what words and meaning say: so it settles as much whether they are loud or quiet."""
    server: float = 0.2


TUNING = Tuning()

LONGEST_PHRASE = 6
EXACT = 1000.0


@dataclass(frozen=True, slots=True)
class Ranking:
    """One query's view of every tool."""

    snapshot: Snapshot
    query: Query
    weights: dict[str, float]
    repairs: dict[str, list[str]]
    words: Floats
    """Raw BM25F score."""
    meaning: Floats
    """Cosine similarity to the query, or to its nearest sentence."""
    parts: dict[str, Floats]
    """What each kind of evidence adds to the total."""
    total: Floats
    hit: NDArray[np.bool_]
    exact: frozenset[int]

    @property
    def wanted(self) -> dict[str, float]:
        """The query's own stems; what synonyms and repairs add is a bonus."""
        return dict.fromkeys(self.query.stems, 1.0)


def rank(snapshot: Snapshot, text: str, deep: Encoder | None = None, tuning: Tuning = TUNING) -> Ranking:
    """Score every tool of a snapshot for a query."""
    query = read_query(text)
    surfaces = {stem(word): word for word in split(fold(query.text))}
    weights, repairs = weigh(query.stems, snapshot.lexicon, lambda one: _repair(snapshot, one, surfaces))
    words = snapshot.lexicon.score(weights)
    texts = [mend(one, repairs) for one in (query.text, *query.sentences)]
    near = by_words(snapshot, texts, surfaces.values())
    said = z(words)
    share = _share(tuning, len(query.stems), _coverage(snapshot, query, words))
    if deep is not None and snapshot.deep is not None:
        # Only the whole query goes through the larger model: for single sentences word vectors did as well.
        vector = deep.queries(texts[:1])[0]
        near = by_model(snapshot, vector, surfaces.values(), near, said + share * near.whole)
    parts = {"words": said, "meaning": share * near.whole, "sentences": np.zeros_like(words)}
    if query.sentences:
        best = _best_sentence(snapshot, query, weights, near.sentences, share)
        parts["sentences"] = tuning.sentences * (best - parts["words"] - parts["meaning"])
    total = sum(parts.values(), np.zeros_like(words))
    parts["name"] = tuning.phrase * _phrases(snapshot, query.text)
    parts["verb"] = tuning.verbs * _deviation(total) * _verbs(snapshot, query)
    total = total + parts["name"] + parts["verb"]
    parts["server"] = tuning.server * _servers(snapshot, total)
    total = total + parts["server"]
    hit = (words > 0) | near.hit
    exact = [row for name in query.identifiers for row in snapshot.named.get(name, ())]
    total[exact] += EXACT
    hit[exact] = True
    return Ranking(snapshot, query, weights, repairs, words, near.similar, parts, total, hit, frozenset(exact))


def _share(tuning: Tuning, stems: int, coverage: float) -> float:
    """The weight of meaning against words."""
    short = tuning.meaning_short * min(3.0, max(0.6, tuning.covered / max(coverage, 0.02)))
    return float(tuning.meaning_long + (short - tuning.meaning_long) / (1 + np.exp((stems - tuning.turn) / 3)))


def _coverage(snapshot: Snapshot, query: Query, words: Floats) -> float:
    """How much of what the query could score by its words the best tool does score."""
    possible = sum(map(snapshot.lexicon.rarity, query.stems))
    return float(words.max(initial=0.0)) / possible if possible > 0 else 1.0


def _repair(snapshot: Snapshot, one: str, surfaces: dict[str, str]) -> Sequence[str]:
    # A whole word of the vocabulary was meant as it stands: "monkey" is no misspelt "money".
    pieces = word_pieces()
    if pieces.knows(one) or pieces.knows(surfaces.get(one, one)):
        return ()
    return snapshot.speller.near(one)


def _best_sentence(snapshot: Snapshot, query: Query, weights: dict[str, float], near: Floats, share: float) -> Floats:
    """The best that any sentence alone gives: a request for three things is three requests."""
    best = np.full(len(snapshot), -np.inf, np.float32)
    for number, sentence in enumerate(query.sentences):
        mine, _ = weigh(tuple(dict.fromkeys(terms(sentence))), snapshot.lexicon, lambda _: ())
        stems = {one: weight for one, weight in mine.items() if one in weights}
        best = np.maximum(best, z(snapshot.lexicon.score(stems)) + share * z(near[:, number]))
    return best


def _phrases(snapshot: Snapshot, text: str) -> Floats:
    """Tools whose whole name the query says, word by word."""
    said = name_stems(text)
    rows: set[int] = set()
    for begin in range(len(said)):
        for end in range(begin + 2, min(begin + LONGEST_PHRASE, len(said)) + 1):
            rows.update(snapshot.phrases.get(said[begin:end], ()))
    found = np.zeros(len(snapshot), np.float32)
    found[list(rows)] = 1.0
    return found


def _verbs(snapshot: Snapshot, query: Query) -> Floats:
    """+1 where tool and query speak of the same kind of doing, -1 where of another, 0 where either is silent."""
    wanted = kinds_of_query(query.sentences or (query.text,))
    signs = [0.0, *(1.0 if kinds & wanted else -1.0 for kinds in range(1, ALL + 1))]
    return np.array(signs if wanted else [0.0] * len(signs), np.float32)[snapshot.kinds]


def _servers(snapshot: Snapshot, total: Floats) -> Floats:
    """How well a tool's whole server fits: its tools' mean score."""
    if not len(snapshot):
        return total
    means = np.bincount(snapshot.servers, total, len(snapshot.sizes)) / np.maximum(snapshot.sizes, 1)
    return z(means.astype(np.float32)[snapshot.servers]) * _deviation(total)


def _deviation(values: Floats) -> np.float32:
    return np.float32(values.std()) if len(values) else np.float32(0)
