"""Does the server's word about a tool allow this variant? The annotation matrix, strict and lenient.

Hints are what the server claims. Where it claims nothing, `unannotated` decides: `trust` leaves the hints
open, `destructive` fills in MCP's own defaults (readOnlyHint false, destructiveHint true). A hint that is there
but not true, false or null says nothing that can be relied on, so it counts as MCP's default for it: the
cautious reading, and never a way past the gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from mcpproxy.config.models import IntentDeclaration
from mcpproxy.policy.operations import VARIANT_OF, OperationType, Variant
from mcpproxy.policy.quoting import quoted_name
from mcpproxy.policy.verdict import ALLOWED, Allowed, Refusal, Verdict

Kind = Literal["destructive", "read_only", "modifying", "open"]
"""What the hints amount to; `open` means that nothing is claimed."""

_RECOMMENDED: dict[Kind, OperationType] = {
    "destructive": "destructive",
    "read_only": "read",
    "modifying": "write",
    "open": "write",
}


class Hints(Struct, frozen=True):
    """What is taken as known about a tool; None where nothing is."""

    read_only: bool | None = None
    destructive: bool | None = None
    assumed: bool = False
    """True where the hint that decides is a default and not the server's word."""

    @property
    def kind(self) -> Kind:
        """What the hints amount to: the more restrictive one wins."""
        if self.destructive:
            return "destructive"
        if self.read_only:
            return "read_only"
        return "open" if self.read_only is None else "modifying"


def effective_hints(annotations: Mapping[str, object] | None, settings: IntentDeclaration) -> Hints:
    """The hints that the gate and `call_with` go by. Depends on tool and settings alone, so keep the answer."""
    given = annotations if isinstance(annotations, Mapping) else {}
    said_read_only, said_destructive = given.get("readOnlyHint"), given.get("destructiveHint")
    read_only = _usable(said_read_only, default=False)
    destructive = _usable(said_destructive, default=True)
    if read_only is None and settings.unannotated == "destructive":
        read_only = False
        destructive = True if destructive is None else destructive
    # The hint that decides, as the server said it and as it is taken.
    said, taken = (said_destructive, destructive) if destructive else (said_read_only, read_only)
    return Hints(read_only, destructive, assumed=said is not taken)


def call_with(hints: Hints) -> Variant:
    """The variant to recommend for a tool."""
    return VARIANT_OF[_RECOMMENDED[hints.kind]]


def check_annotations(tool: str, operation: OperationType, hints: Hints, settings: IntentDeclaration) -> Verdict:
    """Hold the variant for `operation` against the hints of `tool` (`server:tool`)."""
    kind = hints.kind
    if operation == "destructive" or kind == "open":
        return ALLOWED
    if kind == "read_only":
        return ALLOWED if operation == "read" else Allowed((_overly_cautious(tool),))
    if kind == "modifying" and (operation == "write" or not settings.refuse_read_on_modifying):
        return ALLOWED
    refusal = _mismatch(tool, operation, hints)
    if settings.strict_server_validation:
        return refusal
    return Allowed((f"{refusal.message} (allowed: strict_server_validation is off)",))


def _usable(hint: object, *, default: bool) -> bool | None:
    return hint if hint is None or isinstance(hint, bool) else default


def _overly_cautious(tool: str) -> str:
    return f"Tool '{quoted_name(tool)}' is marked read-only by server, call_tool_read would do"


def _mismatch(tool: str, operation: OperationType, hints: Hints) -> Refusal:
    name, used, wanted = quoted_name(tool), VARIANT_OF[operation], call_with(hints)
    claim = "destructive" if hints.kind == "destructive" else "as modifying"
    details = {
        "tool": name,
        "tool_variant": used,
        "call_with": wanted,
        "hints": {"readOnlyHint": hints.read_only, "destructiveHint": hints.destructive},
        # The text is the contract's in every case; where a default decides and not the server's word, this says so.
        "assumed": hints.assumed,
    }
    return Refusal(
        "SERVER_MISMATCH", f"Tool '{name}' is marked {claim} by server, use {wanted} instead of {used}", details
    )
