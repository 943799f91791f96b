"""What of a call goes on record? One `tool_call` always, and one `policy_decision` where somebody decided."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from mcpproxy.activity.journal import RecordFailed
from mcpproxy.activity.record import NOTHING, Record, Status
from mcpproxy.calls import result
from mcpproxy.policy.verdict import Code, Refusal

if TYPE_CHECKING:
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Call, Outcome

log = logging.getLogger(__name__)

_POLICY: frozenset[Code] = frozenset(
    (
        "INTENT_MISMATCH",
        "MISSING_INTENT",
        "MISSING_OPERATION_TYPE",
        "INVALID_OPERATION_TYPE",
        "INVALID_SENSITIVITY",
        "REASON_TOO_LONG",
        "SERVER_MISMATCH",
        "INTENT_CONFLICT",
        "NOT_APPROVED",
        "ACCESS_DENIED",
        "OUTPUT_INVALID",
    )
)
_REJECTED: frozenset[Code] = frozenset(("INVALID_ARGUMENTS", "UNKNOWN_SERVER", "UNKNOWN_TOOL"))
_MAX_ERROR_TEXT = 2000
_MAX_ERROR_BLOCKS = 100


def status_of(refusal: Refusal) -> Status:
    """How a refused call stands on record."""
    if refusal.code in _POLICY:
        return "blocked"
    return "rejected" if refusal.code in _REJECTED or refusal.details.get("shed") else "error"


def open_record(call: Call, house: House) -> Outcome:
    """Put a call that changes something on record before the upstream hears of it."""
    return None if call.operation == "read" else _open(call, house)


async def _open(call: Call, house: House) -> Refusal | None:
    try:
        await house.journal.open_call(_record(call, "interrupted", None))
    except RecordFailed as error:
        return Refusal("RECORD_FAILED", f"The call was not made: {error}")
    call.opened = True
    return None


async def close_record(call: Call, house: House, refusal: Refusal | None) -> None:
    """Commit what the call came to. Raises RecordFailed where that cannot be done."""
    if refusal is not None and refusal.code == "RECORD_FAILED":
        return
    error: str | None = None
    status: Status = "success"
    if refusal is not None:
        error, status = refusal.message, status_of(refusal)
    elif call.view is not None and call.view.is_error:
        error, status = _error_text(call), "error"
    else:
        house.usage[f"{call.server}:{call.tool_name}"] += 1
    main = _record(call, status, error, refusal)
    written = [main]
    if status == "blocked":
        written.append(_decision(call, main, "blocked", error, refusal))
    elif call.warnings:
        written.append(_decision(call, main, "warning", "; ".join(call.warnings), None))
    if call.opened:
        await house.journal.close_call(*written)
    else:
        await house.journal.write(*written)


async def close_interrupted(call: Call, house: House) -> None:
    """The caller left before the answer came."""
    main = _record(call, "interrupted", "the caller left before the answer came")
    if call.opened:
        await house.journal.close_call(main)
    else:
        await house.journal.write(main)


def unrecorded(call: Call, error: RecordFailed) -> Refusal:
    """The answer is there, but may not leave: nothing is answered that is not on record."""
    message = f"The call was made, but its record could not be written, so its result is withheld: {error}"
    log.error("%s", message)
    return Refusal("RECORD_FAILED", message)


def _record(call: Call, status: Status, error: str | None, refusal: Refusal | None = None) -> Record:
    metadata = _about(call)
    if call.warnings:
        metadata["warnings"] = list(call.warnings)
    if refusal is not None:
        metadata["code"] = refusal.code
    metadata.update(call.findings)
    response = call.recorded_result or call.result
    return Record(
        id=call.id,
        type="tool_call",
        source=call.caller.source,
        server_name=call.server or None,
        tool_name=call.tool_name or None,
        status=status,
        error_message=error,
        arguments=_asked_arguments(call),
        response=Raw(response) if response else NOTHING,
        duration_ms=round((time.perf_counter() - call.started) * 1000, 3),
        timestamp=call.began,
        request_id=call.request_id,
        session_id=call.caller.session_id,
        client_name=call.caller.client_name,
        metadata=metadata,
    )


def _about(call: Call) -> dict[str, Any]:
    """What every record of a call tells: what was meant, and by whom where that is known."""
    about: dict[str, Any] = {"intent": call.intent, "tool_variant": call.variant}
    if call.caller.key.startswith("token:"):
        about["caller"] = call.caller.key
    return about


def _asked_arguments(call: Call) -> Raw:
    """What was sent, or, where that was never made out, what was asked."""
    if call.arguments != b"{}":
        return Raw(call.arguments)
    if call.asked.args is not None:
        return Raw(call.asked.args)
    if call.asked.args_json is not None:
        return Raw(msgspec.json.encode(call.asked.args_json))
    return Raw(b"{}")


def _decision(call: Call, main: Record, status: Status, text: str | None, refusal: Refusal | None) -> Record:
    metadata = {**_about(call), **call.findings}
    if refusal is not None:
        metadata |= {"code": refusal.code, "details": refusal.details}
    return Record(
        type="policy_decision",
        source=call.caller.source,
        server_name=main.server_name,
        tool_name=main.tool_name,
        status=status,
        error_message=text,
        request_id=call.request_id,
        session_id=main.session_id,
        client_name=main.client_name,
        metadata=metadata,
    )


def _error_text(call: Call) -> str:
    assert call.view is not None
    texts = (result.text_of(block) for block in result.first_blocks(call.view, _MAX_ERROR_BLOCKS))
    return " ".join(text for text in texts if text)[:_MAX_ERROR_TEXT] or "the tool reported an error"
