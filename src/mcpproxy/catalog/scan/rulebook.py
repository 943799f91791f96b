"""What does the scan look for, and in which order? Every family of rules, in one list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mcpproxy.catalog.scan.commands import commands_in
from mcpproxy.catalog.scan.finding import Finding, rank
from mcpproxy.catalog.scan.hidden import hidden_in
from mcpproxy.catalog.scan.marks import marks_in
from mcpproxy.catalog.scan.names import imitations, references
from mcpproxy.catalog.scan.oddities import lying_hints, sentence_names, unread
from mcpproxy.catalog.scan.said import codes, wording
from mcpproxy.catalog.scan.subject import ALONE, Context, Subject
from mcpproxy.catalog.scan.tongues import foreign_orders

MAX_FINDINGS: Final = 50


def hidden(subject: Subject) -> Iterator[Finding]:
    """Characters that a person does not see."""
    for piece in subject.pieces:
        for rule, severity, span, why in hidden_in(piece):
            yield subject.remark(rule, severity, piece, span, why)


def disguised(subject: Subject) -> Iterator[Finding]:
    """Text that poses as the system, commands for a shell, and orders in other languages."""
    for reading, _ in subject.readings:
        for look in (marks_in, commands_in, foreign_orders):
            for rule, severity, span, why in look(reading):
                yield subject.remark(rule, severity, reading.piece, span, why)


RULEBOOK: Final[tuple[Callable[[Subject], Iterable[Finding]], ...]] = (
    hidden,
    disguised,
    wording,
    codes,
    references,
    imitations,
    sentence_names,
    lying_hints,
    unread,
)


def scan(definition: bytes, context: Context = ALONE) -> tuple[Finding, ...]:
    """Look at one definition with every rule; the worst findings first, at most one per rule and place."""
    subject = Subject(definition, context)
    found: dict[tuple[str, str], Finding] = {}
    for rule in RULEBOOK:
        for finding in rule(subject):
            key = (finding.rule, finding.where)
            if key not in found or rank(finding.severity) > rank(found[key].severity):
                found[key] = finding
    return tuple(sorted(found.values(), key=lambda finding: -rank(finding.severity))[:MAX_FINDINGS])
