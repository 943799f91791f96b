"""What does a query ask for? Its stems with synonyms and repairs, its sentences, and the names it mentions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcpproxy.catalog.search.lexical import Lexicon
from mcpproxy.catalog.search.synonyms import WEIGHT as SYNONYM_WEIGHT
from mcpproxy.catalog.search.synonyms import synonyms
from mcpproxy.catalog.search.words import MAX_QUERY_WORDS, query_text, terms

REPAIR_WEIGHT = 0.8
MIN_SENTENCE = 3
"""Stems that a sentence needs to stand on its own; a shorter one joins its neighbour."""
MAX_SENTENCES = 8

_SENTENCE = re.compile(r"(?<=[.!?;\u3002\uff01\uff1f])\s+|\n+")
_NAMELIKE = re.compile(r"\w[_:./-]\w|[a-z][A-Z]")
_WRAPPING = "\"'`\u201c\u201d\u2018\u2019«»()[]{}<>,;.!?"


@dataclass(frozen=True, slots=True)
class Query:
    """One query, read."""

    text: str
    stems: tuple[str, ...]
    """Distinct stems in order."""
    sentences: tuple[str, ...]
    """The sentences of a longer request, where there are at least two; else empty."""
    identifiers: frozenset[str]
    """Lower-case words that may be the exact name or id of a tool."""


def read_query(query: str) -> Query:
    """Take a query apart. What is over the limits is not read."""
    text = query_text(query)
    stems = tuple(dict.fromkeys(terms(text)))[:MAX_QUERY_WORDS]
    words = {word.strip(_WRAPPING) for word in text.split()[:MAX_QUERY_WORDS]}
    named = {word.lower() for word in words if _NAMELIKE.search(word)}
    return Query(text, stems, _sentences(text), frozenset({*named, text.strip().strip(_WRAPPING).lower()}))


def weigh(
    stems: Sequence[str], lexicon: Lexicon, repair: Callable[[str], Sequence[str]]
) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Weights of the stems to look for, and which unknown ones were repaired to what."""
    weights = dict.fromkeys(stems, 1.0)
    repairs: dict[str, list[str]] = {}
    for stem in stems:
        for other in synonyms(stem):
            weights.setdefault(other, SYNONYM_WEIGHT)
        if not lexicon.count(stem):
            near = list(repair(stem))
            if near:
                repairs[stem] = near
            for other in near:
                weights[other] = max(weights.get(other, 0.0), REPAIR_WEIGHT / len(near))
    return weights, repairs


def _sentences(text: str) -> tuple[str, ...]:
    found: list[str] = []
    held = ""
    for piece in _SENTENCE.split(text):
        held = f"{held} {piece}".strip()
        if len(terms(held)) >= MIN_SENTENCE:
            found.append(held)
            held = ""
    if held and found:
        found[-1] = f"{found[-1]} {held}"
    return tuple(found[:MAX_SENTENCES]) if len(found) > 1 else ()
