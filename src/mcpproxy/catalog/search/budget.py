"""What does one answer carry? As many full schemas as the token budget allows for the best, one line for the rest.

`detail` absent: full schemas take up to half of the budget, best first. In a small catalogue that is every entry;
in a large one it is the best few, which hold the right tool most of the time, and the rest cost a line each.
`detail="full"` spends the whole budget on schemas, `detail="compact"` none. A schema is given whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.signature import first_sentence, signature_of
from mcpproxy.catalog.search.tokens import estimate

Detail = Literal["full", "compact"]

ENVELOPE = 160
"""Tokens of an answer besides its entries and the query: the keys, the usage instructions, the note."""
SHARE = 0.5
"""The part of the budget that full schemas may take where the caller did not choose."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One hit with what its entry needs besides the definition."""

    document: Document
    score: float
    annotations: Mapping[str, Any]
    call_with: str
    schema: bytes | None = None
    """The input schema byte for byte, where the caller has it: it is then given on as the server wrote it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The entries of one answer and what they cost."""

    tools: list[dict[str, Any]]
    full: int
    """How many of the entries carry their whole schema."""
    left_out: int
    """How many hits had no room at all."""
    tokens: int
    note: str | None
    """What the agent should know about entries without a schema; None where all is there."""


def build_answer(
    candidates: Sequence[Candidate], *, max_tokens: int, detail: Detail | None = None, echo: str = ""
) -> Answer:
    """Fit the entries of the best candidates into the budget; `echo` is the query as the answer repeats it."""
    envelope = ENVELOPE + (estimate(echo) if echo else 0)
    room = max_tokens - envelope
    compact = [compact_entry(candidate) for candidate in candidates]
    costs = [_cost(entry) for entry in compact]
    kept = _that_fit(costs, room)
    entries, costs = compact[:kept], costs[:kept]
    spent = sum(costs)
    allowed = {"full": room, "compact": 0, None: int(room * SHARE)}[detail]
    schemas = full = 0
    for position, candidate in enumerate(candidates[:kept] if allowed else ()):
        entry = full_entry(candidate)
        cost = _cost(entry)
        total = spent - costs[position] + cost
        # The best hit may take more than its share: without its schema the agent must ask again.
        if total <= room and (schemas + cost <= allowed or position == 0):
            entries[position] = entry
            schemas, spent, full = schemas + cost, total, full + 1
    left_out = len(candidates) - kept
    return Answer(entries, full, left_out, spent + envelope, _note(kept, full, left_out, max_tokens, detail))


def full_entry(candidate: Candidate) -> dict[str, Any]:
    """An entry with its whole schema."""
    document = candidate.document
    return {
        "name": document.id,
        "description": document.description,
        "inputSchema": dict(document.input_schema) if candidate.schema is None else msgspec.Raw(candidate.schema),
        "score": candidate.score,
        "server": document.server,
        "annotations": dict(candidate.annotations),
        "call_with": candidate.call_with,
    }


def compact_entry(candidate: Candidate) -> dict[str, Any]:
    """An entry of one line: a signature in place of the schema."""
    document = candidate.document
    return {
        "name": document.id,
        "score": candidate.score,
        "signature": signature_of(document.input_schema),
        "description": first_sentence(document.description or document.title),
        "annotations": dict(candidate.annotations),
        "call_with": candidate.call_with,
    }


def _cost(entry: Mapping[str, Any]) -> int:
    return estimate(msgspec.json.encode(entry).decode("utf-8", "replace")) + 1


def _that_fit(costs: Sequence[int], room: int) -> int:
    for position, cost in enumerate(costs):
        room -= cost
        # The best hit always comes: an answer that names no tool helps nobody.
        if room < 0 and position > 0:
            return position
    return len(costs)


def _note(kept: int, full: int, left_out: int, max_tokens: int, detail: Detail | None) -> str | None:
    said = []
    if full < kept and detail != "compact":
        said.append(
            f"{full} of {kept} entries carry their full inputSchema, the others a signature: "
            "get their schemas from describe_tool."
        )
    if left_out:
        said.append(f"{left_out} more hits had no room in {max_tokens} tokens: narrow the query or ask for fewer.")
    return " ".join(said) or None
