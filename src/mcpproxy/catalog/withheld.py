"""How many tools that fit a question wait for approval? A number for agents, and nothing of what the tools say."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from mcpproxy.catalog.approval import Waiting
from mcpproxy.catalog.search.words import query_text, terms

MAX_LOOKED_AT: Final = 1_000
_MAX_TEXT: Final = 2_000


def count_matching(waiting: Iterable[Waiting], query: str) -> int:
    """How many of these share more than half of the question's words; give only those that the caller may see."""
    wanted = set(terms(query_text(query)))
    if not wanted:
        return 0
    tools = (one for one in waiting if one.tool)
    return sum(2 * len(wanted & _terms(one)) > len(wanted) for one in itertools.islice(tools, MAX_LOOKED_AT))


def waiting_note(count: int) -> str | None:
    """The sentence that goes with an answer of retrieve_tools; None where nothing waits."""
    if count == 0:
        return None
    tools = "1 matching tool waits" if count == 1 else f"{count} matching tools wait"
    return (
        f"{tools} for approval. The operator of mcpproxy can approve with `mcpproxy tools approve` or in the dashboard."
    )


def _terms(waiting: Waiting) -> frozenset[str]:
    known: frozenset[str] | None = waiting.__dict__.get("terms")
    if known is None:
        known = waiting.__dict__["terms"] = frozenset(terms(_text(waiting)))
    return known


def _text(waiting: Waiting) -> str:
    try:
        fields: Any = msgspec.json.decode(waiting.live)
    except (msgspec.MsgspecError, RecursionError):
        fields = {}
    said = fields.get("description") if isinstance(fields, dict) else None
    return f"{waiting.tool} {said if isinstance(said, str) else ''}"[:_MAX_TEXT]
