"""Which requirement of the seeds does policy meet? One test per requirement, matrix row and edge case.

What needs a running proxy (FR-004, FR-021, FR-024 … FR-030, FR-033 … FR-039) is shown where that part lives.
"""

from typing import Any

import msgspec
import pytest

from mcpproxy.config.models import Config, IntentDeclaration
from mcpproxy.policy.annotations import call_with, check_annotations, effective_hints
from mcpproxy.policy.intent import read_intent
from mcpproxy.policy.operations import OPERATION_OF, OPERATIONS, VARIANT_OF, OperationType
from mcpproxy.policy.verdict import Allowed, Refusal, Verdict

SEED_000 = IntentDeclaration(require_operation_type=True)
SEED_001 = IntentDeclaration()


def judge(
    variant: str,
    annotations: dict[str, Any] | None = None,
    settings: IntentDeclaration = SEED_000,
    **given: Any,
) -> Verdict:
    """Both stages, as a call goes through them."""
    operation = OPERATION_OF[variant]
    refusal = read_intent(operation, settings, **given).refusal
    if refusal is not None:
        return refusal
    return check_annotations("github:x", operation, effective_hints(annotations, settings), settings)


def outcome(verdict: Verdict) -> str:
    if isinstance(verdict, Refusal):
        return verdict.code
    return "WARN + ALLOW" if verdict.warnings else "ALLOW"


def text(verdict: Verdict) -> str:
    assert isinstance(verdict, Refusal)
    return verdict.message


READ = {"operation_type": "read"}
WRITE = {"operation_type": "write"}
DESTRUCTIVE = {"operation_type": "destructive"}
NO_HINTS: dict[str, Any] = {}
RO = {"readOnlyHint": True}
DEL = {"destructiveHint": True}
ANY_HINTS: list[dict[str, Any]] = [NO_HINTS, RO, DEL, {**RO, **DEL}, {"readOnlyHint": False}]


# Requirements


@pytest.mark.parametrize(
    ("requirement", "variant", "operation"),
    [
        ("FR-001", "call_tool_read", "read"),
        ("FR-002", "call_tool_write", "write"),
        ("FR-003", "call_tool_destructive", "destructive"),
    ],
)
def test_fr_001_to_003_one_variant_for_each_kind_of_operation(
    requirement: str, variant: str, operation: OperationType
) -> None:
    assert OPERATION_OF[variant] == operation, requirement
    assert VARIANT_OF[operation] == variant, requirement


def test_fr_004_call_tool_is_not_a_variant() -> None:
    assert "call_tool" not in OPERATION_OF


@pytest.mark.parametrize("variant", OPERATION_OF)
def test_fr_005_every_variant_accepts_an_intent(variant: str) -> None:
    assert outcome(judge(variant, intent={"operation_type": OPERATION_OF[variant]})) == "ALLOW"


@pytest.mark.parametrize("variant", OPERATION_OF)
def test_fr_006_intent_is_required_on_every_variant_in_two_key_mode(variant: str) -> None:
    assert outcome(judge(variant)) == "MISSING_INTENT"


@pytest.mark.parametrize("declared", ["read", "write", "destructive"])
def test_fr_007_operation_type_has_three_values(declared: str) -> None:
    assert outcome(judge(f"call_tool_{declared}", intent={"operation_type": declared})) == "ALLOW"


def test_fr_007_any_other_operation_type_is_invalid() -> None:
    assert outcome(judge("call_tool_read", intent={"operation_type": "delete"})) == "INVALID_OPERATION_TYPE"


@pytest.mark.parametrize("declared", OPERATIONS)
@pytest.mark.parametrize("variant", OPERATION_OF)
def test_fr_008_and_fr_011_operation_type_must_match_the_variant(variant: str, declared: str) -> None:
    expected = "ALLOW" if variant == f"call_tool_{declared}" else "INTENT_MISMATCH"
    for settings in (SEED_000, SEED_001):
        assert outcome(judge(variant, settings=settings, intent={"operation_type": declared})) == expected


@pytest.mark.parametrize("value", ["public", "internal", "private", "unknown", None])
def test_fr_009_data_sensitivity_is_optional_with_four_values(value: str | None) -> None:
    assert outcome(judge("call_tool_read", intent={**READ, "data_sensitivity": value})) == "ALLOW"
    assert outcome(judge("call_tool_read", intent={**READ, "data_sensitivity": "x"})) == "INVALID_SENSITIVITY"


@pytest.mark.parametrize(("length", "expected"), [(0, "ALLOW"), (1000, "ALLOW"), (1001, "REASON_TOO_LONG")])
def test_fr_010_reason_is_optional_and_at_most_1000_characters(length: int, expected: str) -> None:
    assert outcome(judge("call_tool_read", intent={**READ, "reason": "r" * length})) == expected


def test_fr_012_a_call_without_intent_is_refused_in_two_key_mode() -> None:
    assert text(judge("call_tool_read")) == "intent parameter is required for call_tool_read"


def test_fr_013_a_call_without_operation_type_is_refused_in_two_key_mode() -> None:
    assert text(judge("call_tool_read", intent={"reason": "r"})) == "intent.operation_type is required"


def test_fr_014_the_error_names_both_sides_of_the_mismatch() -> None:
    message = text(judge("call_tool_write", intent=READ))
    assert "call_tool_write" in message
    assert "declares read" in message


def test_fr_015_and_fr_017_read_is_refused_on_a_destructive_tool() -> None:
    assert outcome(judge("call_tool_read", DEL, intent=READ)) == "SERVER_MISMATCH"


def test_fr_016_and_fr_018_write_is_refused_on_a_destructive_tool() -> None:
    assert outcome(judge("call_tool_write", DEL, intent=WRITE)) == "SERVER_MISMATCH"


@pytest.mark.parametrize("hints", ANY_HINTS)
def test_fr_019_destructive_is_allowed_regardless_of_annotations(hints: dict[str, Any]) -> None:
    for unannotated in ("trust", "destructive"):
        settings = msgspec.structs.replace(SEED_000, unannotated=unannotated)
        assert outcome(judge("call_tool_destructive", hints, settings, intent=DESTRUCTIVE)) == "ALLOW"


@pytest.mark.parametrize("variant", OPERATION_OF)
def test_fr_020_without_annotations_the_agent_is_trusted(variant: str) -> None:
    for hints in (None, NO_HINTS):
        assert outcome(judge(variant, hints, SEED_001)) == "ALLOW"


@pytest.mark.parametrize(
    ("hints", "variant"),
    [
        (DEL, "call_tool_destructive"),
        (RO, "call_tool_read"),
        (None, "call_tool_write"),
        ({**RO, **DEL}, "call_tool_destructive"),
    ],
)
def test_fr_023_call_with_follows_the_hints(hints: dict[str, Any] | None, variant: str) -> None:
    assert call_with(effective_hints(hints, SEED_001)) == variant


def test_fr_031_the_complete_intent_is_in_the_form_for_the_record() -> None:
    given = {"operation_type": "write", "data_sensitivity": "private", "reason": "Creating user record"}
    assert msgspec.to_builtins(read_intent("write", SEED_000, intent=given).intent) == given


def test_fr_031_an_omitted_field_is_not_on_record() -> None:
    recorded = read_intent("write", SEED_000, intent=WRITE).intent
    assert msgspec.to_builtins(recorded) == {"operation_type": "write"}


def test_fr_040_every_refusal_says_what_is_wrong_or_what_to_use() -> None:
    intents: list[dict[str, Any] | None] = [None, {}, WRITE, {"operation_type": "x"}]
    for intent in intents:
        assert "intent" in text(judge("call_tool_read", intent=intent)).lower()
    assert "use call_tool_destructive" in text(judge("call_tool_read", DEL, intent=READ))


def test_fr_041_strict_server_validation_is_on_by_default() -> None:
    assert IntentDeclaration().strict_server_validation is True
    assert Config().intent_declaration.strict_server_validation is True


@pytest.mark.parametrize(("variant", "intent"), [("call_tool_read", READ), ("call_tool_write", WRITE)])
def test_fr_042_without_strict_validation_a_mismatch_warns_and_is_allowed(variant: str, intent: dict[str, Any]) -> None:
    lenient = msgspec.structs.replace(SEED_000, strict_server_validation=False)
    verdict = judge(variant, DEL, lenient, intent=intent)
    assert isinstance(verdict, Allowed)
    assert "is marked destructive by server" in verdict.warnings[0]


def test_fr_042_without_strict_validation_an_intent_mismatch_is_still_refused() -> None:
    lenient = IntentDeclaration(strict_server_validation=False)
    assert outcome(judge("call_tool_read", NO_HINTS, lenient, intent=WRITE)) == "INTENT_MISMATCH"


# The validation matrix of seed 000 (two-key), row by row


def test_matrix_read_on_read_only_is_allowed() -> None:
    assert outcome(judge("call_tool_read", RO, intent=READ)) == "ALLOW"


def test_matrix_read_on_destructive_is_rejected() -> None:
    assert outcome(judge("call_tool_read", DEL, intent=READ)) == "SERVER_MISMATCH"


def test_matrix_read_on_no_annotation_is_allowed() -> None:
    assert outcome(judge("call_tool_read", None, intent=READ)) == "ALLOW"


@pytest.mark.parametrize("hints", ANY_HINTS)
def test_matrix_read_declaring_write_is_rejected_whatever_the_annotation(hints: dict[str, Any]) -> None:
    assert outcome(judge("call_tool_read", hints, intent=WRITE)) == "INTENT_MISMATCH"


def test_matrix_write_on_read_only_is_allowed_with_a_warning() -> None:
    assert outcome(judge("call_tool_write", RO, intent=WRITE)) == "WARN + ALLOW"


def test_matrix_write_on_destructive_is_rejected() -> None:
    assert outcome(judge("call_tool_write", DEL, intent=WRITE)) == "SERVER_MISMATCH"


def test_matrix_write_on_no_annotation_is_allowed() -> None:
    assert outcome(judge("call_tool_write", None, intent=WRITE)) == "ALLOW"


@pytest.mark.parametrize("hints", ANY_HINTS)
def test_matrix_write_declaring_destructive_is_rejected_whatever_the_annotation(hints: dict[str, Any]) -> None:
    assert outcome(judge("call_tool_write", hints, intent=DESTRUCTIVE)) == "INTENT_MISMATCH"


@pytest.mark.parametrize("hints", ANY_HINTS)
def test_matrix_destructive_is_allowed_whatever_the_annotation(hints: dict[str, Any]) -> None:
    assert outcome(judge("call_tool_destructive", hints, intent=DESTRUCTIVE)) == "ALLOW"


@pytest.mark.parametrize("hints", ANY_HINTS)
def test_matrix_destructive_declaring_read_is_rejected_whatever_the_annotation(hints: dict[str, Any]) -> None:
    assert outcome(judge("call_tool_destructive", hints, intent=READ)) == "INTENT_MISMATCH"


@pytest.mark.parametrize("hints", ANY_HINTS)
@pytest.mark.parametrize("variant", OPERATION_OF)
def test_matrix_a_missing_intent_is_rejected_whatever_the_annotation(variant: str, hints: dict[str, Any]) -> None:
    assert outcome(judge(variant, hints)) == "MISSING_INTENT"
    assert outcome(judge(variant, hints, intent={})) == "MISSING_OPERATION_TYPE"


# The matrix of seed 001 (inferred), row by row


@pytest.mark.parametrize(
    ("variant", "hints", "expected"),
    [
        ("call_tool_read", RO, "ALLOW"),
        ("call_tool_read", DEL, "SERVER_MISMATCH"),
        ("call_tool_read", None, "ALLOW"),
        ("call_tool_write", RO, "WARN + ALLOW"),
        ("call_tool_write", DEL, "SERVER_MISMATCH"),
        ("call_tool_write", None, "ALLOW"),
        ("call_tool_destructive", RO, "ALLOW"),
        ("call_tool_destructive", DEL, "ALLOW"),
        ("call_tool_destructive", None, "ALLOW"),
    ],
)
def test_inferred_matrix(variant: str, hints: dict[str, Any] | None, expected: str) -> None:
    assert outcome(judge(variant, hints, SEED_001)) == expected


# Edge cases of seed 000


def test_edge_case_both_hints_true_is_treated_as_destructive() -> None:
    both = {**RO, **DEL}
    assert outcome(judge("call_tool_read", both, intent=READ)) == "SERVER_MISMATCH"
    assert outcome(judge("call_tool_write", both, intent=WRITE)) == "SERVER_MISMATCH"
    assert outcome(judge("call_tool_destructive", both, intent=DESTRUCTIVE)) == "ALLOW"


def test_edge_case_annotations_that_change_after_discovery_are_judged_anew() -> None:
    assert outcome(judge("call_tool_read", RO, intent=READ)) == "ALLOW"
    assert outcome(judge("call_tool_read", DEL, intent=READ)) == "SERVER_MISMATCH"


def test_edge_case_an_operation_type_cannot_override_the_variant() -> None:
    assert outcome(judge("call_tool_read", DEL, SEED_001, intent=DESTRUCTIVE)) == "INTENT_MISMATCH"


def test_beyond_the_seeds_read_is_refused_where_the_server_says_not_read_only() -> None:
    modifying = {"readOnlyHint": False}
    assert outcome(judge("call_tool_read", modifying, SEED_001)) == "SERVER_MISMATCH"
    assert outcome(judge("call_tool_write", modifying, SEED_001)) == "ALLOW"
