"""Does a text say something of this kind? Patterns over kinds of words, matched in one pass without backtracking.

A pattern is a list of steps: `NOT ..2 TELL ..4 USER` is a word of the kind NOT, then within two words one of the kind
TELL, then within four one of the kind USER. Capitals name a kind of the lexicon, small letters are words, `|` means
either, `//9` is a gap that may cross the end of a sentence. `9{ SEND USER URL }` is the same words in any order, all
within nine words of one sentence. Each step takes the nearest word that fits, so the time is the length of the text
times the length of the gaps, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from mcpproxy.catalog.scan.disguise import Reading
from mcpproxy.catalog.scan.finding import Severity

# The first branch takes nearly every word at once; `+` after a count means that it is never tried shorter again.
_TOKEN: Final = re.compile(
    r"""(?P<plain>[a-z]++(?=[\s,)]))
    |(?P<url>[a-z][a-z0-9+]{1,15}+://[^\s"'<>`)\]]{1,500}+)
    |(?P<mail>[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,5}+)
    |(?P<path>(?<!\w)(?:(?:~|\.{1,2}|\$\w{1,40}+|%\w{1,40}+%)?[/\\][\w.$~*\-/\\]{2,300}+|\.[a-z][\w./-]{1,200}+))
    |(?P<number>\+\d[\d ()-]{7,20}\d|(?<!\w)[a-z]{2}\d{2}(?:[ ]?[a-z0-9]{4}){3,7}(?!\w))
    |(?P<dotted>[a-z0-9][a-z0-9-]{0,60}+(?:\.[a-z0-9][a-z0-9_-]{0,60}+){1,6}+(?:/[\w./-]{1,80}+)?)
    |(?P<word>[^\W_]\w*+(?:'[a-z]{1,3})?)
    |(?P<end>[.!?;](?=\s|$|["')\]])|\n\s?\n|\n\s{0,40}+[-*•#\d])""",
    re.VERBOSE,
)
_SHORTLY: Final = 5


class Wording(Struct, frozen=True):
    """One rule about wording: what it is called, how bad it is and why, and the patterns that show it, one per line."""

    rule: str
    severity: Severity
    why: str
    patterns: str
    quotable: bool = False
    """Whether talking about such a phrase is common enough that a mention of it counts for little."""
    negatable: bool = False
    """Whether a "never" right before turns the phrase into its opposite."""
    unless: str = ""
    """Kinds or words shortly before or within the phrase that make it harmless."""
    own_names: bool = True
    """Whether the phrase counts where the tool it names is one of the server's own."""


class Token(NamedTuple):
    """One word of a text."""

    kinds: int
    sentence: int
    start: int
    end: int
    text: str


class Match(NamedTuple):
    """A phrase found in a text."""

    wording: Wording
    first: int
    last: int


class _Step(NamedTuple):
    kinds: int
    gap: int
    across: bool


class _Pattern(NamedTuple):
    wording: Wording
    steps: tuple[_Step, ...]
    unless: int
    window: int
    """How many words the steps may be spread over in any order; 0 where they have an order."""


class Lexicon:
    """Every word that some pattern asks for, with the kinds it is of."""

    def __init__(
        self,
        kinds: Mapping[str, Iterable[str]],
        pairs: Mapping[str, Iterable[str]],
        shapes: Mapping[str, re.Pattern[str]],
    ) -> None:
        self._bits: dict[str, int] = {}
        self._words: dict[str, int] = {}
        self._pairs: dict[str, dict[str, int]] = {}
        for kind, words in kinds.items():
            bit = self._bit(kind)
            for word in words:
                self._words[word] = self._words.get(word, 0) | bit
        for kind, phrases in pairs.items():
            for phrase in phrases:
                first, _, second = phrase.partition(" ")
                before = self._pairs.setdefault(second, {})
                before[first] = before.get(first, 0) | self._bit(kind)
        self._shapes = [(self._bit(kind), shape) for kind, shape in shapes.items()]

    def compile(self, wording: Wording, pattern: str) -> _Pattern:
        """The steps of a pattern; a kind that does not exist is an error at import."""
        parts = pattern.split()
        window = 0
        if parts[0].endswith("{"):
            window = int(parts[0][:-1])
            parts = parts[1:-1]
        steps: list[_Step] = []
        gap, across = 0, False
        for part in parts:
            if part.startswith(("..", "//")):
                gap, across = int(part[2:]), part.startswith("//")
                continue
            steps.append(_Step(self._kinds(wording, part), gap, across))
            gap, across = 0, False
        unless = self._kinds(wording, "|".join(wording.unless.split())) if wording.unless else 0
        return _Pattern(wording, tuple(steps), unless, window)

    def _kinds(self, wording: Wording, part: str) -> int:
        bits = 0
        for word in part.split("|"):
            if word.isupper() and word not in self._bits:
                raise ValueError(f"{wording.rule}: there is no kind of word called {word}")
            bits |= self._bits[word] if word.isupper() else self._literal(word)
        return bits

    def kind(self, *names: str) -> int:
        """The kinds of these names, as tokens carry them."""
        kinds = 0
        for name in names:
            kinds |= self._bits[name]
        return kinds

    def _bit(self, kind: str) -> int:
        return self._bits.setdefault(kind, 1 << len(self._bits))

    def _literal(self, word: str) -> int:
        bit = self._bit(word)
        self._words[word] = self._words.get(word, 0) | bit
        return bit

    def tokens(self, reading: Reading) -> list[Token]:
        """The words of a text with their kinds."""
        text = reading.text.lower()
        if len(text) != len(reading.text):  # a few letters change their length with their case
            text = reading.text
        if reading.piece.is_key:
            text = text.replace("_", " ").replace("-", " ")
        found: list[Token] = []
        sentence = 0
        for match in _TOKEN.finditer(text):
            group = match.lastgroup
            if group == "end":
                sentence += 1
                continue
            word = match[0]
            kinds = self._words.get(word, 0)
            if group != "plain" and (group != "word" or "_" in word):
                for bit, shape in self._shapes:
                    if shape.search(word):
                        kinds |= bit
            elif word.endswith("'s") and not kinds:
                kinds = self._words.get(word[:-2], 0)
            elif word in self._pairs and found and found[-1].sentence == sentence:
                kinds |= self._pairs[word].get(found[-1].text, 0)
            found.append(Token(kinds, sentence, match.start(), match.end(), word))
        return found


class Phrasebook:
    """All phrases that are looked for."""

    def __init__(self, lexicon: Lexicon, wordings: Iterable[Wording]) -> None:
        self.lexicon = lexicon
        self._patterns = [
            lexicon.compile(wording, line) for wording in wordings for line in wording.patterns.strip().splitlines()
        ]
        self._not = lexicon.kind("NOT")
        self._really = lexicon.kind("REALLY")

    def matches(self, tokens: list[Token]) -> Iterator[Match]:
        """Every phrase in the words, each at most once: its first place."""
        present = 0
        for token in tokens:
            present |= token.kinds
        if not present:
            return
        for pattern in self._patterns:
            for step in pattern.steps:
                if not step.kinds & present:
                    break
            else:
                found = _find_together(tokens, pattern) if pattern.window else _find(tokens, pattern.steps)
                if found is not None and not self._excused(tokens, found, pattern):
                    yield Match(pattern.wording, *found)

    def _excused(self, tokens: list[Token], found: tuple[int, int], pattern: _Pattern) -> bool:
        first, last = found
        sentence = tokens[first].sentence
        if pattern.unless:
            around = tokens[max(0, first - _SHORTLY) : last + 1]
            if any(token.kinds & pattern.unless and token.sentence == sentence for token in around):
                return True
        if pattern.wording.negatable:
            kinds = 0
            for token in tokens[max(0, first - 2) : first]:
                kinds |= token.kinds if token.sentence == sentence else 0
            return bool(kinds & self._not) and not kinds & self._really  # "do not forget to" is no "do not"
        return False


def _find(tokens: list[Token], steps: tuple[_Step, ...]) -> tuple[int, int] | None:
    first_kinds = steps[0].kinds
    for first, token in enumerate(tokens):
        if token.kinds & first_kinds:
            last = _follow(tokens, first, steps)
            if last is not None:
                return first, last
    return None


def _follow(tokens: list[Token], place: int, steps: tuple[_Step, ...]) -> int | None:
    sentence = tokens[place].sentence
    for kinds, gap, across in steps[1:]:
        for following in range(place + 1, min(place + gap + 2, len(tokens))):
            token = tokens[following]
            if token.sentence != sentence and not across:
                return None
            if token.kinds & kinds:
                place, sentence = following, token.sentence
                break
        else:
            return None
    return place


def _find_together(tokens: list[Token], pattern: _Pattern) -> tuple[int, int] | None:
    """The first place where every step has a word of its own within the window and the sentence."""
    steps = pattern.steps
    last_seen = [-1] * len(steps)
    sentence = -1
    for place, token in enumerate(tokens):
        if token.sentence != sentence:
            sentence = token.sentence
            last_seen = [-1] * len(steps)
        if not token.kinds:
            continue
        for number, step in enumerate(steps):
            if token.kinds & step.kinds:
                last_seen[number] = place
        first = min(last_seen)
        if first >= 0 and place - first <= pattern.window and len(set(last_seen)) == len(steps):
            return first, place
    return None
