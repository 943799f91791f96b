"""What does an explanation say? The standing of one tool for one query, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

EVIDENCE = {
    "words": "words of the query in the tool's text",
    "meaning": "nearness in meaning",
    "sentences": "one sentence of the query fits better than the whole",
    "name": "the query says the tool's name",
    "verb": "the same kind of doing (read, create, update, delete, send)",
    "server": "the other tools of the server fit too",
    "usage": "it is called more than others",
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


def absent(tool_id: str, why: str) -> Explanation:
    """The standing of a tool that no search can find."""
    return Explanation(tool_id, False, f"not shown: {why}", None, False, None, {}, ())
