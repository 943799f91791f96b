"""Does this tool pass itself off as another server's, or send the model there?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from mcpproxy.catalog.scan.finding import Finding, Severity
from mcpproxy.catalog.scan.neighbours import Neighbour, shape_of, words_of
from mcpproxy.catalog.scan.pieces import Piece
from mcpproxy.catalog.scan.subject import Subject
from mcpproxy.catalog.shown import escaped

_ALIKE: Final = 0.6
_DISTINCT: Final = re.compile(r"[a-z0-9][_-][a-z0-9]|[a-z][A-Z]")
_LEAST: Final = 6
_COMMON: Final = 3
_NEAR: Final = 40
_NAME: Final = re.compile(r"[^\W_][\w-]*")
_WORD: Final = re.compile(r"[a-z]+")
_TWIN_TOOLS: Final = 3
_TWIN_SHARE: Final = 0.8
_CALLING: Final = frozenset(
    """call calls calling use using invoke invokes run runs execute executes first before instead never always via
    replace replaces route redirect trigger""".split()
)


def imitations(subject: Subject) -> Iterator[Finding]:
    """A name, or a name and a description, that belongs to another server."""
    name, server, around = subject.name, subject.context.server, subject.context.neighbours
    piece = Piece("name", name)
    span = (0, len(name))
    words = words_of(str(subject.fields.get("description") or ""))
    for other in around.shaped(name, server):
        severity, why = _same_name(subject, other, words)
        yield subject.remark("names.shadow", severity, piece, span, why)
        return
    for other in around.looking(name, server):
        if _joined(other.name) == _joined(name):  # `task_list` and `tasklist`: a matter of style
            continue
        why = f"looks like the name of a tool of server '{escaped(other.server)}', and is not the same"
        yield subject.remark("names.lookalike", "high", piece, span, why)
        return
    if len(name) >= _LEAST:
        for other in around.sounding(name, server):
            if _alike(words, other.words):
                why = f"is close to the name of a tool of server '{escaped(other.server)}', and describes the same"
                yield subject.remark("names.imitation", "medium", piece, span, why)
                return


def _same_name(subject: Subject, other: Neighbour, words: frozenset[str]) -> tuple[Severity, str]:
    server = escaped(other.server)
    if not _alike(words, other.words):
        return "low", f"server '{server}' has a tool of this name too"
    theirs = subject.context.neighbours.names(other.server)
    shared = len(theirs & subject.context.own)
    if shared >= _TWIN_TOOLS and shared >= _TWIN_SHARE * len(theirs):
        return "low", f"server '{server}' has the same tools: it may be the same program twice"
    return "medium", f"has the name and the description of a tool of server '{server}', and would be taken for it"


def references(subject: Subject) -> Iterator[Finding]:
    """A tool of another server, by name, in the texts of this one."""
    context = subject.context
    if context.neighbours.is_empty:
        return
    own, itself = _shapes(context.own), shape_of(subject.name)
    seen: set[str] = set()
    for reading, _ in subject.readings:
        for found in _NAME.finditer(reading.text):
            name = found[0]
            if len(name) < _LEAST or name in seen or not _DISTINCT.search(name):
                continue
            seen.add(name)
            others = context.neighbours.named(name, context.server)
            if not others or (shape := shape_of(name)) in own or shape == itself:
                continue
            near = reading.text[max(0, found.start() - _NEAR) : found.end() + _NEAR].lower()
            # A name that many servers use is a common word rather than somebody's tool.
            passing = len(others) >= _COMMON or _CALLING.isdisjoint(_WORD.findall(near))
            severity: Severity = "low" if passing else "medium"
            why = f"speaks of a tool of server '{escaped(others[0].server)}', which is not its business"
            yield subject.remark("tools.other", severity, reading.piece, reading.span(*found.span()), why)


@lru_cache(maxsize=8)
def _shapes(names: frozenset[str]) -> frozenset[str]:
    """Worked out once for all tools of a list: for each of them it would take the square of their number."""
    return frozenset(map(shape_of, names))


def _joined(name: str) -> str:
    return shape_of(name).replace("_", "")


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if not one or not other:
        return one == other
    return len(one & other) >= _ALIKE * len(one | other)
