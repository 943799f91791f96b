"""What is there to know about one record? Its intent, what was decided and why, what was sent and what came back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

from mcpproxy.cli import looks
from mcpproxy.cli.screen import value_of

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen

_DECIDED: Final = ("policy_decision", "tool_call")
_OWN_SECTIONS: Final = ("intent", "tool_variant", "warnings", "output_validation", "code", "details")


class _Payloads(Struct):
    """The parts that are shown as they are stored."""

    arguments: Raw = Raw(b"null")
    response: Raw = Raw(b"null")


def print_record(screen: Screen, raw: Raw, decisions: list[Raw]) -> None:
    """Print one record and the decisions about the same call."""
    import msgspec

    record = value_of(raw)
    payloads = msgspec.json.decode(raw, type=_Payloads)
    _print_head(screen, record)
    _print_intent(screen, record["metadata"])
    for decision in [record] if record["type"] == "policy_decision" else [value_of(each) for each in decisions]:
        _print_decision(screen, decision)
    _print_rest(screen, record["metadata"])
    for title, payload in (("Arguments", payloads.arguments), ("Response", payloads.response)):
        if bytes(payload) != b"null":
            _title(screen, title)
            _print_json(screen, bytes(payload))


def _print_head(screen: Screen, record: dict[str, Any]) -> None:
    at = datetime.fromisoformat(record["timestamp"])
    status = looks.status(record["status"])
    what = ":".join(name for name in (record["server_name"], record["tool_name"]) if name)
    screen.line((record["type"], "bold"), f" {what} " if what else " ", (status.text, status.style))
    took = looks.duration(record["duration_ms"])
    _field(screen, "id", record["id"])
    _field(screen, "time", f"{at.astimezone().isoformat(' ', 'milliseconds')} ({looks.ago(at.timestamp())})")
    _field(screen, "took", took)
    _field(screen, "source", record["source"])
    _field(screen, "client", record["client_name"])
    _field(screen, "session", record["session_id"])
    _field(screen, "request", record["request_id"])
    _field(screen, "chain", f"{record['writer']} position {record['position']}, hash {record['hash'][:16]}…")
    if record["type"] != "policy_decision":
        _field(screen, "error", record["error_message"], "red")


def _print_intent(screen: Screen, metadata: dict[str, Any]) -> None:
    intent = metadata.get("intent")
    if not isinstance(intent, dict):
        return
    _title(screen, "Intent")
    cell = looks.intent(intent.get("operation_type"))
    shown = cell.shown if screen.terminal and cell.shown else cell.text
    operation = intent.get("operation_type", "")
    icon = shown.partition(" ")[0] + " " if screen.terminal and cell.shown else ""
    _field(screen, "operation", f"{icon}{operation}", cell.style)
    _field(screen, "variant", metadata.get("tool_variant"))
    _field(screen, "sensitivity", intent.get("data_sensitivity"))
    _field(screen, "reason", intent.get("reason"))


def _print_decision(screen: Screen, decision: dict[str, Any]) -> None:
    metadata = decision["metadata"]
    status = looks.status(decision["status"])
    _title(screen, "Decision")
    _field(screen, "outcome", status.text, status.style)
    _field(screen, "code", metadata.get("code"))
    _field(screen, "why", decision["error_message"])
    found = metadata.get("output_validation")
    if isinstance(found, dict):
        _title(screen, "Output validation")
        for name, value in found.items():
            _field(screen, name, value if isinstance(value, str) else str(value))


def _print_rest(screen: Screen, metadata: dict[str, Any]) -> None:
    for warning in metadata.get("warnings") or ():
        _title(screen, "Warning")
        screen.line("  ", (str(warning), "yellow"))
    rest = {name: value for name, value in metadata.items() if name not in _OWN_SECTIONS}
    if rest:
        import msgspec

        _title(screen, "Details")
        _print_json(screen, msgspec.json.encode(rest))


def _print_json(screen: Screen, data: bytes) -> None:
    text = screen.highlighted(data)
    for line in text.split("\n"):
        screen.print(text.blank_copy("  ").append_text(line))


def _title(screen: Screen, text: str) -> None:
    screen.write("")
    screen.line((text, "bold"))


def _field(screen: Screen, name: str, value: str | None, style: str = "") -> None:
    if value:
        screen.line("  ", (f"{name:<12}", "dim"), " ", (value, style))
