"""Which word did the query mean? Typing errors are repaired against the stems that the tools really hold."""

from __future__ import annotations

from mcpproxy.arrays import NDArray, np
from mcpproxy.catalog.search.lexical import Lexicon

MIN_LENGTH = 4
MAX_REPAIRS = 2
"""Two near words are as far as a guess goes; more would only bring in noise."""
SHORT = 6
"""Below this length another letter makes another word (tone, move), so only lost, doubled and swapped ones count."""
_ALPHABET = b"abcdefghijklmnopqrstuvwxyz"
_WIDTH = 24


class Speller:
    """Near stems of one lexicon. Made at the first unknown word, then kept with the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        held = np.flatnonzero(np.diff(lexicon.starts))
        stems = [lexicon.vocabulary.stems[number] for number in held]
        self._stems = [
            stem for stem in stems if stem.isascii() and stem.isalpha() and MIN_LENGTH <= len(stem) <= _WIDTH
        ]
        self._letters = _letter_counts(self._stems)

    def near(self, stem: str) -> list[str]:
        """The stems one typing error away (two in a long word), best first."""
        if not (stem.isascii() and stem.isalpha() and MIN_LENGTH - 1 <= len(stem) <= _WIDTH) or not self._stems:
            return []
        allowed = 1 if len(stem) < 7 else 2
        # An edit changes at most two letter counts, so most of the vocabulary drops out in one array operation.
        mine = np.array([stem.count(chr(letter)) for letter in _ALPHABET], np.int8)
        apart = np.abs(self._letters - mine).sum(axis=1)
        found = []
        for position in np.flatnonzero(apart <= 2 * allowed):
            candidate = self._stems[position]
            if candidate[0] != stem[0] or (len(stem) < SHORT and len(candidate) == len(stem) and apart[position]):
                continue
            distance = edits(stem, candidate, allowed)
            if distance <= allowed:
                found.append((distance, -self._lexicon.count(candidate), candidate))
        if not found:
            return []
        found.sort()
        closest = found[0][0]
        return [candidate for distance, *_, candidate in found if distance == closest][:MAX_REPAIRS]


def edits(one: str, other: str, allowed: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words; `allowed` + 1 when more."""
    if abs(len(one) - len(other)) > allowed:
        return allowed + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > allowed:
            return allowed + 1
    return row[-1]


def _letter_counts(stems: list[str]) -> NDArray[np.int8]:
    """One row per stem: how often each letter stands in it."""
    table = np.array([stem.encode() for stem in stems], dtype=f"S{_WIDTH}").view(np.uint8).reshape(len(stems), _WIDTH)
    counts = [(table == letter).sum(axis=1) for letter in _ALPHABET]
    return np.stack(counts, axis=1).astype(np.int8)
