"""How does a record look? One line in a list, and everything there is to know about it on its own page."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from mcpproxy.activity.chain import hash_of
from mcpproxy.activity.record import NOTHING, Stored, decoded
from mcpproxy.web import words
from mcpproxy.web.text import pretty

_LONGEST_TEXT: Final = 200_000
_FEW: Final = 5


class Row(Struct, frozen=True, kw_only=True):
    """One record in a list."""

    id: str
    type: str
    what: str
    """What kind of thing it is, in words."""
    at: datetime
    server: str
    tool: str
    intent: str
    reason: str
    status: words.Look
    duration_ms: float | None
    note: str
    """What else is worth a line: the error, the change."""


class Block(Struct, frozen=True):
    """One part of a result: a text to read, or a word on what it is."""

    kind: str
    text: str


class ResultShown(Struct, frozen=True, kw_only=True):
    """A tool's result as a person reads it."""

    is_error: bool
    blocks: list[Block]
    structured: str
    raw: str


class Details(Struct, frozen=True, kw_only=True):
    """Everything about one record."""

    row: Row
    record: Stored
    variant: str
    sensitivity: str
    warnings: list[str]
    validation: dict[str, Any]
    code: str
    more: str
    """The rest of the metadata, as JSON."""
    arguments: str
    result: ResultShown | None
    response: str
    intact: bool
    """Whether its hash is that of what it says."""


def row_of(record: Stored) -> Row:
    """One line for a list."""
    metadata = _metadata(record)
    intent = _dict(metadata.get("intent"))
    return Row(
        id=record.id,
        type=record.type,
        what=words.TYPES.get(record.type, record.type),
        at=record.timestamp,
        server=record.server_name or "",
        tool=record.tool_name or "",
        intent=str(intent.get("operation_type") or ""),
        reason=str(intent.get("reason") or ""),
        status=words.STATUSES.get(record.status, words.Look(record.status)),
        duration_ms=record.duration_ms,
        note=record.error_message or _note(record, metadata),
    )


def details_of(record: Stored) -> Details:
    """Everything about a record."""
    metadata = _metadata(record)
    rest = {
        key: value
        for key, value in metadata.items()
        if key not in ("intent", "tool_variant", "warnings", "output_validation", "code")
    }
    is_result = record.type == "tool_call" and record.response != NOTHING
    return Details(
        row=row_of(record),
        record=record,
        variant=str(metadata.get("tool_variant") or ""),
        sensitivity=str(_dict(metadata.get("intent")).get("data_sensitivity") or ""),
        warnings=[str(warning) for warning in _list(metadata.get("warnings"))],
        validation=_dict(metadata.get("output_validation")),
        code=str(metadata.get("code") or ""),
        more=json.dumps(rest, indent=2, ensure_ascii=False, default=str) if rest else "",
        arguments=pretty(bytes(record.arguments)) if record.arguments != NOTHING else "",
        result=result_of(bytes(record.response)) if is_result else None,
        response=pretty(bytes(record.response)) if record.response != NOTHING else "",
        intact=hash_of(record).hex() == record.hash,
    )


def result_of(raw: bytes) -> ResultShown | None:
    """A tool's result as a person reads it; None where it is none, or was cut on its way into the log."""
    try:
        members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        blocks = [_block(bytes(block)) for block in msgspec.json.decode(members["content"], type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, KeyError, RecursionError):
        return None
    structured = bytes(members.get("structuredContent", b""))
    return ResultShown(
        is_error=bytes(members.get("isError", b"")) == b"true",
        blocks=blocks,
        structured=pretty(structured) if structured not in (b"", b"null") else "",
        raw=pretty(raw),
    )


def _block(raw: bytes) -> Block:
    try:
        block = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return Block("other", pretty(raw))
    kind, text, data = str(block.get("type", "")), block.get("text"), block.get("data")
    if kind == "text" and isinstance(text, str):
        return Block("text", text[:_LONGEST_TEXT])
    if isinstance(data, str):
        return Block(kind, f"{block.get('mimeType', 'data')}, about {len(data) * 3 // 4:,} bytes")
    return Block(kind or "other", pretty(raw)[:_LONGEST_TEXT])


def _metadata(record: Stored) -> dict[str, Any]:
    return _dict(decoded(record.metadata))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _note(record: Stored, metadata: dict[str, Any]) -> str:
    """What happened to the house, in a line."""
    match record.type:
        case "server_change":
            return str(metadata.get("change") or metadata.get("state") or "")
        case "tool_change":
            named = [str(name) for name in _list(metadata.get("tools"))]
            rest = f" and {len(named) - _FEW} more" if len(named) > _FEW else ""
            return f"{metadata.get('change', '')}: {', '.join(named[:_FEW])}{rest}"
        case "config_change":
            token = _dict(metadata.get("token")).get("name")
            named = [str(name) for key in metadata for name in _list(metadata[key])]
            change = str(metadata.get("change") or "changed").replace("_", " ")
            return f"{change}: {token}" if token else f"{change}: {', '.join(named)}" if named else change
        case "system_start":
            return f"version {metadata.get('version', '')}"
        case _:
            warnings = _list(metadata.get("warnings"))
            return str(warnings[0]) if warnings else ""
