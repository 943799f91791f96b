"""What happened to a server's tools that should go on record? Values only; who writes records is told, not asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from mcpproxy.catalog.approval import Approval
from mcpproxy.catalog.scan.finding import Finding, is_clean
from mcpproxy.catalog.shown import escaped

What = Literal[
    "approved", "pending", "changed", "returned", "removed", "rejected", "revoked", "quarantined", "released"
]
_ABOUT_SERVERS: Final = ("quarantined", "released")
_NEEDS_A_LOOK: Final = ("pending", "changed")
MAX_NAMED: Final = 200


class Change(Struct, frozen=True, kw_only=True):
    """One kind of news about one server."""

    server: str
    what: What
    tools: tuple[str, ...] = ()
    by: str = ""
    """`first_use` or `scan` where no person decided; empty where nobody did."""
    findings: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    """What the scan found, by tool; only tools with findings of severity medium or higher."""

    @property
    def record_type(self) -> Literal["server_change", "tool_change"]:
        """The type of its activity record."""
        return "server_change" if self.what in _ABOUT_SERVERS else "tool_change"

    @property
    def status(self) -> Literal["success", "warning"]:
        """The status of its activity record: a warning where a person should look."""
        return "warning" if self.what in _NEEDS_A_LOOK or self.findings else "success"

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of its activity record; hostile names are escaped."""
        named: dict[str, Any] = {"change": self.what}
        if self.by:
            named["by"] = self.by
        if self.tools:
            named["tools"] = [tool_label(tool) for tool in self.tools[:MAX_NAMED]]
            named["total"] = len(self.tools)
        if self.findings:
            found = list(self.findings.items())[:MAX_NAMED]
            named["findings"] = {tool_label(tool): sorted({one.rule for one in findings}) for tool, findings in found}
        return named


def tool_label(tool: str) -> str:
    """A tool's name for a person; the instructions of a server have none."""
    return escaped(tool, 128) if tool else "(instructions)"


States = Mapping[str, tuple[str, str]]
"""For each tool of a list, where it stands and which version it is."""


def compare(
    server: str,
    before: States,
    after: States,
    approvals: tuple[Approval, ...],
    findings: Mapping[str, tuple[Finding, ...]],
) -> Iterator[Change]:
    """The news between two lists of a server; nothing where nothing is new."""
    approved_by = {approval.tool: approval.by for approval in approvals}
    for by in dict.fromkeys(approved_by.values()):
        tools = tuple(tool for tool in after if approved_by.get(tool) == by)
        yield Change(server=server, what="approved", tools=tools, by=by, findings=_worth_telling(tools, findings))
    groups: dict[What, list[str]] = {}
    for tool, (state, version) in after.items():
        if tool in approved_by or before.get(tool) == (state, version):
            continue
        if state in ("pending", "changed"):
            groups.setdefault("pending" if state == "pending" else "changed", []).append(tool)
        elif state == "approved" and before:
            groups.setdefault("returned", []).append(tool)
    gone = [tool for tool in before if tool not in after]
    if gone:
        groups["removed"] = gone
    for what, names in groups.items():
        yield Change(server=server, what=what, tools=tuple(names), findings=_worth_telling(tuple(names), findings))


def _worth_telling(
    tools: tuple[str, ...], findings: Mapping[str, tuple[Finding, ...]]
) -> Mapping[str, tuple[Finding, ...]]:
    return {tool: findings[tool] for tool in tools if tool in findings and not is_clean(findings[tool])}
