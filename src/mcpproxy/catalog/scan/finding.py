"""What did the scan find? One remark on one piece of text: which rule, how bad, where exactly, and why it matters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

Severity = Literal["low", "medium", "high"]

_RANK: Final = {"low": 1, "medium": 2, "high": 3}


class Finding(Struct, frozen=True):
    """One remark. Everything in it is safe to print: hostile characters are escaped and long text is cut."""

    rule: str
    severity: Severity
    where: str
    """The place in the definition, such as `inputSchema.properties.path.description`."""
    span: tuple[int, int]
    """From which to before which character of the text at that place."""
    excerpt: str
    why: str


def rank(severity: Severity) -> int:
    """Severities as numbers that compare."""
    return _RANK[severity]


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among the findings; None where there are none."""
    return max((finding.severity for finding in findings), key=rank, default=None)


def is_clean(findings: Iterable[Finding]) -> bool:
    """Whether nothing of severity medium or higher was found: what `trust: scan` asks."""
    return all(rank(finding.severity) < rank("medium") for finding in findings)
