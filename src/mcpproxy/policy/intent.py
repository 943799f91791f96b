"""What does the caller say the call is for? Reads both forms of the declaration and holds it against the variant.

The first failure wins: MISSING_INTENT, MISSING_OPERATION_TYPE, INVALID_OPERATION_TYPE, INTENT_MISMATCH,
INVALID_SENSITIVITY, REASON_TOO_LONG (or INVALID_ARGUMENTS for a reason that is not text), and last
INTENT_CONFLICT: only a declaration whose every part is good on its own is asked whether the parts agree.
JSON null counts as absent everywhere.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct

from mcpproxy.config.models import IntentDeclaration
from mcpproxy.policy.operations import OPERATIONS, VARIANT_OF, OperationType
from mcpproxy.policy.quoting import json_type, quoted_value
from mcpproxy.policy.verdict import Refusal

Sensitivity = Literal["public", "internal", "private", "unknown"]

SENSITIVITIES: tuple[Sensitivity, ...] = get_args(Sensitivity)
MAX_REASON = 1000

_KEYS = ("operation_type", "data_sensitivity", "reason")
_ALIASES = ("intent_data_sensitivity", "intent_reason")
_KNOWN = frozenset((*_KEYS, *_ALIASES))


class Intent(Struct, frozen=True, omit_defaults=True):
    """A declared intent, in the form in which it goes on record."""

    operation_type: OperationType
    data_sensitivity: Sensitivity | None = None
    reason: str | None = None


class Declaration(NamedTuple):
    """An intent fit for the record in any case, and why the call is refused, if it is."""

    intent: Intent
    refusal: Refusal | None


_UNDECLARED = {operation: Declaration(Intent(operation), None) for operation in OPERATIONS}


def read_intent(
    operation: OperationType,
    settings: IntentDeclaration,
    *,
    intent: object = None,
    intent_data_sensitivity: object = None,
    intent_reason: object = None,
) -> Declaration:
    """Read what came with a call of the variant for `operation`, as decoded from JSON and not yet checked."""
    bare = intent is None and intent_data_sensitivity is None and intent_reason is None
    if bare and not settings.require_operation_type:
        return _UNDECLARED[operation]
    nested: dict[str, Any] = intent if isinstance(intent, dict) else {}
    declared = nested.get("operation_type")
    sensitivities = _given(intent_data_sensitivity, nested, "data_sensitivity")
    reasons = _given(intent_reason, nested, "reason")
    refusal = (
        (_check_presence(operation, intent, declared) if settings.require_operation_type else None)
        or _check_operation(operation, declared)
        or _check_sensitivity(sensitivities)
        or _check_reason(reasons)
        or _check_unity(intent, nested, sensitivities, reasons)
    )
    return Declaration(_for_record(operation, declared, sensitivities, reasons), refusal)


def _given(flat: object, nested: dict[str, Any], field: str) -> list[Any]:
    """Every value the caller gave for a field, in any of its spellings."""
    found = (flat, nested.get(field), nested.get(f"intent_{field}"))
    return [value for value in found if value is not None]


def _check_presence(operation: OperationType, intent: object, declared: object) -> Refusal | None:
    variant = VARIANT_OF[operation]
    if not isinstance(intent, dict):
        message = f"intent parameter is required for {variant}"
        return Refusal("MISSING_INTENT", message, {"tool_variant": variant})
    if declared is None:
        details = {"tool_variant": variant, "expected": operation}
        return Refusal("MISSING_OPERATION_TYPE", "intent.operation_type is required", details)
    return None


def _check_operation(operation: OperationType, declared: object) -> Refusal | None:
    if declared is None or declared == operation:
        return None
    if declared not in OPERATIONS:
        value = quoted_value(declared)
        message = f"Invalid intent.operation_type '{value}': must be read, write, or destructive"
        return Refusal("INVALID_OPERATION_TYPE", message, {"value": value, "allowed": list(OPERATIONS)})
    variant = VARIANT_OF[operation]
    message = f"Intent mismatch: tool is {variant} but intent declares {declared}"
    details = {"tool_variant": variant, "declared": declared, "expected": operation}
    return Refusal("INTENT_MISMATCH", message, details)


def _check_sensitivity(given: list[Any]) -> Refusal | None:
    for sensitivity in given:
        if sensitivity not in SENSITIVITIES:
            value = quoted_value(sensitivity)
            allowed = "must be public, internal, private, or unknown"
            message = f"Invalid intent.data_sensitivity '{value}': {allowed}"
            return Refusal("INVALID_SENSITIVITY", message, {"value": value, "allowed": list(SENSITIVITIES)})
    return None


def _check_reason(given: list[Any]) -> Refusal | None:
    for reason in given:
        if not isinstance(reason, str):
            message = f"intent.reason must be a string, not {_a(reason)}"
            return Refusal("INVALID_ARGUMENTS", message, {"field": "intent.reason"})
        if len(reason) > MAX_REASON:
            message = f"intent.reason exceeds maximum length of {MAX_REASON} characters"
            return Refusal("REASON_TOO_LONG", message, {"length": len(reason), "maximum": MAX_REASON})
    return None


def _check_unity(
    intent: object, nested: dict[str, Any], sensitivities: list[Any], reasons: list[Any]
) -> Refusal | None:
    """Refuse what would otherwise be dropped in silence: the caller meant something by it."""
    if intent is not None and not isinstance(intent, dict):
        message = f'intent must be an object such as {{"operation_type": "read"}}, not {_a(intent)}'
        return Refusal("INTENT_CONFLICT", message, {"field": "intent"})
    for key in nested:
        if key not in _KNOWN:
            name = quoted_value(key)
            message = f"Unknown key '{name}' in intent: it takes operation_type, data_sensitivity, and reason"
            return Refusal("INTENT_CONFLICT", message, {"field": f"intent.{name}", "allowed": list(_KEYS)})
    for field, given in (("data_sensitivity", sensitivities), ("reason", reasons)):
        if any(value != given[0] for value in given):
            message = f"intent.{field} is given more than once with different values: give it once"
            return Refusal("INTENT_CONFLICT", message, {"field": f"intent.{field}"})
    return None


def _for_record(operation: OperationType, declared: Any, sensitivities: list[Any], reasons: list[Any]) -> Intent:
    """What can be said of the intent even where it is refused; the variant itself is recorded beside it."""
    return Intent(
        operation_type=declared if declared in OPERATIONS else operation,
        data_sensitivity=next((value for value in sensitivities if value in SENSITIVITIES), None),
        reason=next((value[:MAX_REASON] for value in reasons if isinstance(value, str)), None),
    )


def _a(value: object) -> str:
    kind = json_type(value)
    return f"an {kind}" if kind[0] in "ao" else f"a {kind}"
