"""What does policy cost per call? `python -m bench.policy` prints microseconds for each stage and for all.

The seed's SC-007 allows 10 ms for all validation of a call; the target here is 0.05 ms.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import msgspec

from mcpproxy.config.models import IntentDeclaration
from mcpproxy.policy.access import Scope, check_access
from mcpproxy.policy.annotations import check_annotations, effective_hints
from mcpproxy.policy.intent import read_intent
from mcpproxy.policy.operations import OperationType

TARGET_US = 50.0
REPEATS, CALLS = 7, 20_000

DEFAULTS = IntentDeclaration()
TWO_KEY = IntentDeclaration(require_operation_type=True)
READ_ONLY = {"title": "List", "readOnlyHint": True, "destructiveHint": False, "openWorldHint": True}
DESTRUCTIVE = {"destructiveHint": True}
LISTING, DELETING = effective_hints(READ_ONLY, DEFAULTS), effective_hints(DESTRUCTIVE, DEFAULTS)
SCOPE = Scope(servers=("git*", "notes"), tools=("list_*", "get_*", "notes:*"))

FULL = {"operation_type": "read", "data_sensitivity": "private", "reason": "Listing repositories. " * 20}
LONGEST = {"operation_type": "read", "reason": "r" * 1000}
HOSTILE = {"operation_type": "\u202e\n" * 500_000}


class Wire(msgspec.Struct):
    """The arguments of a call_tool variant as they come off the wire."""

    name: str
    intent: Any = None
    intent_data_sensitivity: Any = None
    intent_reason: Any = None


DECODER = msgspec.json.Decoder(Wire)
FULL_WIRE = msgspec.json.encode({"name": "github:list_repos", "intent": FULL})


def whole(
    operation: OperationType, settings: IntentDeclaration, annotations: dict[str, Any], **given: Any
) -> Callable[[], object]:
    """Every policy stage of one call, with the hints worked out anew each time."""

    def run() -> object:
        check_access(SCOPE, "github", "list_repos", operation)
        declaration = read_intent(operation, settings, **given)
        hints = effective_hints(annotations, settings)
        return declaration, check_annotations("github:list_repos", operation, hints, settings)

    return run


def from_bytes() -> object:
    """The same from the bytes of the arguments on."""
    call = DECODER.decode(FULL_WIRE)
    read_intent("read", TWO_KEY, intent=call.intent)
    hints = effective_hints(READ_ONLY, TWO_KEY)
    return check_annotations(call.name, "read", hints, TWO_KEY)


CASES: list[tuple[str, Callable[[], object]]] = [
    ("intent: none given, inferred", lambda: read_intent("read", DEFAULTS)),
    ("intent: full, two-key", lambda: read_intent("read", TWO_KEY, intent=FULL)),
    ("intent: refused as a mismatch", lambda: read_intent("write", TWO_KEY, intent=FULL)),
    ("intent: refused, 1 MB of hostile text", lambda: read_intent("read", DEFAULTS, intent=HOSTILE)),
    ("hints: worked out", lambda: effective_hints(READ_ONLY, DEFAULTS)),
    ("annotations: allowed", lambda: check_annotations("s:t", "read", LISTING, DEFAULTS)),
    ("annotations: refused", lambda: check_annotations("s:t", "read", DELETING, DEFAULTS)),
    ("access: everything", lambda: check_access(Scope.everything(), "github", "list_repos", "read")),
    ("access: five globs", lambda: check_access(SCOPE, "github", "list_repos", "read")),
    ("whole: bare call", whole("read", DEFAULTS, READ_ONLY)),
    ("whole: full intent, two-key", whole("read", TWO_KEY, READ_ONLY, intent=FULL)),
    ("whole: longest reason", whole("read", TWO_KEY, READ_ONLY, intent=LONGEST)),
    ("whole: refused by the server's hints", whole("read", TWO_KEY, DESTRUCTIVE, intent=FULL)),
    ("whole: decoded from JSON, full, two-key", from_bytes),
]


def main() -> None:
    """Print the best of several runs for each case."""
    worst = 0.0
    for name, case in CASES:
        best = min(timeit.repeat(case, number=CALLS, repeat=REPEATS)) / CALLS * 1e6
        worst = max(worst, best) if name.startswith("whole") else worst
        print(f"{name:<42} {best:8.2f} µs")
    print(f"\nslowest whole call: {worst:.2f} µs (target: under {TARGET_US:g} µs)")


if __name__ == "__main__":
    main()
