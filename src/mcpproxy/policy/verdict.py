"""What did a stage decide? Every stage of a call answers with one of the two verdicts here."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

Code = Literal[
    "INTENT_MISMATCH",
    "MISSING_INTENT",
    "MISSING_OPERATION_TYPE",
    "INVALID_OPERATION_TYPE",
    "INVALID_SENSITIVITY",
    "REASON_TOO_LONG",
    "SERVER_MISMATCH",
    "INTENT_CONFLICT",
    "INVALID_ARGUMENTS",
    "UNKNOWN_SERVER",
    "UNKNOWN_TOOL",
    "NOT_APPROVED",
    "ACCESS_DENIED",
    "UPSTREAM_UNAVAILABLE",
    "LOGIN_REQUIRED",
    "TIMEOUT",
    "RESULT_TOO_LARGE",
    "UPSTREAM_INVALID",
    "INPUT_REQUIRED",
    "RECORD_FAILED",
    "OUTPUT_INVALID",
]


class Refusal(Struct, frozen=True):
    """The call may not be made, or its result not be passed on. Encodes to the `error` object of a reply."""

    code: Code
    message: str
    details: dict[str, Any] = field(default_factory=dict)


class Allowed(Struct, frozen=True):
    """The call may go on; the warnings belong on its record."""

    warnings: tuple[str, ...] = ()


Verdict = Allowed | Refusal

ALLOWED = Allowed()
"""The verdict of nearly every call, made once."""
