"""Is every combination of variant, declared type, hints and settings judged as the contract says?

The tables are written by hand from CONTRACT §2 and share no code with the room.
"""

from itertools import product
from typing import Any, Literal

import pytest

from mcpproxy.config.models import IntentDeclaration
from mcpproxy.policy.annotations import check_annotations, effective_hints
from mcpproxy.policy.intent import read_intent
from mcpproxy.policy.operations import OPERATIONS, OperationType
from mcpproxy.policy.verdict import Allowed, Refusal

# What the intent stage answers: `.` passes.
#   declared                      optional                       two-key (require_operation_type)
#                       read      write     destructive    read      write     destructive
INTENT_TABLE = """
    no-intent         | .         .         .            | NO_INTENT NO_INTENT NO_INTENT
    flat-only         | .         .         .            | NO_INTENT NO_INTENT NO_INTENT
    empty-object      | .         .         .            | NO_TYPE   NO_TYPE   NO_TYPE
    read              | .         MISMATCH  MISMATCH     | .         MISMATCH  MISMATCH
    write             | MISMATCH  .         MISMATCH     | MISMATCH  .         MISMATCH
    destructive       | MISMATCH  MISMATCH  .            | MISMATCH  MISMATCH  .
    other             | INVALID   INVALID   INVALID      | INVALID   INVALID   INVALID
"""

# What the annotation stage answers in strict mode: `.` passes, `remark` passes with a warning,
# `D` is refused as destructive, `M` as modifying (only where refuse_read_on_modifying is on).
#   readOnlyHint destructiveHint   unannotated: trust             unannotated: destructive
#                                  read   write  destructive      read   write  destructive
HINTS_TABLE = """
    absent  absent  | .      .      .            | D      D      .
    absent  true    | D      D      .            | D      D      .
    absent  false   | .      .      .            | M      .      .
    true    absent  | .      remark .            | .      remark .
    true    true    | D      D      .            | D      D      .
    true    false   | .      remark .            | .      remark .
    false   absent  | M      .      .            | M      .      .
    false   true    | D      D      .            | D      D      .
    false   false   | M      .      .            | M      .      .
"""

DECLARED: dict[str, dict[str, Any]] = {
    "no-intent": {},
    "flat-only": {"intent_data_sensitivity": "private", "intent_reason": "because"},
    "empty-object": {"intent": {}},
    "read": {"intent": {"operation_type": "read"}},
    "write": {"intent": {"operation_type": "write"}},
    "destructive": {"intent": {"operation_type": "destructive"}},
    "other": {"intent": {"operation_type": "delete"}},
}
CODES = {
    "NO_INTENT": "MISSING_INTENT",
    "NO_TYPE": "MISSING_OPERATION_TYPE",
    "MISMATCH": "INTENT_MISMATCH",
    "INVALID": "INVALID_OPERATION_TYPE",
}
HINT_VALUES = {"absent": None, "true": True, "false": False}

Table = dict[tuple[str, str, str], str]


def cells(table: str, columns: tuple[str, str]) -> Table:
    """{(row, column group, variant): cell}"""
    found: Table = {}
    for line in table.strip().splitlines():
        row, *groups = (part.split() for part in line.split("|"))
        for column, group in zip(columns, groups, strict=True):
            for variant, cell in zip(("read", "write", "destructive"), group, strict=True):
                found[" ".join(row), column, variant] = cell
    return found


INTENT = cells(INTENT_TABLE, ("optional", "two-key"))
HINTS = cells(HINTS_TABLE, ("trust", "destructive"))


def expected(
    operation: OperationType, declared: str, hints: tuple[str, str], settings: IntentDeclaration
) -> tuple[str, str]:
    """The code (or `allowed`), and a word that the text or the warning must hold."""
    cell = INTENT[declared, "two-key" if settings.require_operation_type else "optional", operation]
    if cell != ".":
        return CODES[cell], ""
    cell = HINTS[" ".join(hints), settings.unannotated, operation]
    if cell == "M" and not settings.refuse_read_on_modifying:
        cell = "."
    word = {"D": "destructive", "M": "modifying", "remark": "read-only", ".": ""}[cell]
    refused = cell in ("D", "M") and settings.strict_server_validation
    return ("SERVER_MISMATCH" if refused else "allowed"), word


def judged(
    operation: OperationType, declared: str, hints: tuple[str, str], settings: IntentDeclaration
) -> Refusal | Allowed:
    refusal = read_intent(operation, settings, **DECLARED[declared]).refusal
    if refusal is not None:
        return refusal
    names = ("readOnlyHint", "destructiveHint")
    annotations = {name: HINT_VALUES[value] for name, value in zip(names, hints, strict=True) if value != "absent"}
    return check_annotations("s:t", operation, effective_hints(annotations, settings), settings)


UNANNOTATED: tuple[Literal["trust", "destructive"], ...] = ("trust", "destructive")
ALL_SETTINGS = [
    IntentDeclaration(
        strict_server_validation=strict,
        require_operation_type=two_key,
        unannotated=unannotated,
        refuse_read_on_modifying=refuse,
    )
    for strict, two_key, unannotated, refuse in product((True, False), (True, False), UNANNOTATED, (True, False))
]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("declared", DECLARED)
def test_every_combination_is_judged_as_the_hand_written_tables_say(operation: OperationType, declared: str) -> None:
    for hints, settings in product(product(HINT_VALUES, HINT_VALUES), ALL_SETTINGS):
        verdict = judged(operation, declared, hints, settings)
        code, word = expected(operation, declared, hints, settings)
        case = (hints, settings, verdict)
        if isinstance(verdict, Refusal):
            assert verdict.code == code, case
            assert word in verdict.message, case
        else:
            assert code == "allowed", case
            assert len(verdict.warnings) == (1 if word else 0), case
            assert all(word in warning for warning in verdict.warnings), case


def test_the_tables_cover_every_combination() -> None:
    assert len(INTENT) == 7 * 2 * 3
    assert len(HINTS) == 9 * 2 * 3
    assert len(set(ALL_SETTINGS)) == 2 * 2 * 2 * 2
