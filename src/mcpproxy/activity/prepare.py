"""What of a record is kept? Secrets masked, payloads cut to size and marked, every text fit for both databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import DecodeError, Raw

from mcpproxy.activity.record import INTENT_TYPES, NOTHING, Linked, Record, decoded
from mcpproxy.activity.words import searchable

Mask = Callable[[str], str]

# A secret that lies across the cut must still be whole when it is masked.
_MARGIN_BYTES: Final = 8192
_LONGEST_NAME: Final = 256
_LONGEST_ERROR: Final = 8192
_LARGEST_METADATA: Final = 262_144
_NULL: Final = b"null"


def prepare(record: Record, writer: str, position: int, max_payload_bytes: int, mask: Mask) -> Linked:
    """The record as it is stored at this place of the chain."""
    return Linked(
        id=record.id,
        type=record.type,
        source=record.source,
        server_name=name(record.server_name, mask),
        tool_name=name(record.tool_name, mask),
        status=record.status,
        error_message=_error(record.error_message, mask),
        arguments=payload(record.arguments, max_payload_bytes, mask),
        response=payload(record.response, max_payload_bytes, mask),
        duration_ms=record.duration_ms,
        timestamp=record.timestamp,
        request_id=name(record.request_id, mask),
        session_id=name(record.session_id, mask),
        client_name=name(record.client_name, mask),
        metadata=_metadata(record.metadata, mask),
        writer=writer,
        position=position,
    )


def derived(linked: Linked) -> tuple[str | None, str]:
    """What is worked out of a stored record to find it by: the intent's operation type, and the words of its text."""
    metadata = decoded(linked.metadata)
    intent = metadata.get("intent") if isinstance(metadata, dict) else None
    if not isinstance(intent, dict):
        return None, searchable(linked.tool_name, linked.error_message)
    operation, reason = intent.get("operation_type"), intent.get("reason")
    return (
        operation if operation in INTENT_TYPES else None,
        searchable(linked.tool_name, linked.error_message, reason if isinstance(reason, str) else None),
    )


def name(text: str | None, mask: Mask) -> str | None:
    """A name or an id: masked, in one piece, short enough for an index."""
    if text is None:
        return None
    text = clean(mask(text))
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def clean(text: str) -> str:
    """The text without what a database refuses: NUL and lone surrogates become U+FFFD."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def _error(text: str | None, mask: Mask) -> str | None:
    if text is None:
        return None
    kept = clean(mask(text[: _LONGEST_ERROR + _MARGIN_BYTES]))
    if len(text) <= _LONGEST_ERROR:
        return kept
    return f"{kept[:_LONGEST_ERROR]}… (cut: {len(text)} characters in all)"


def payload(raw: Raw, limit: int, mask: Mask) -> Raw:
    """The JSON to store: the payload on one line, or its beginning with a mark that tells its size."""
    view = memoryview(raw)
    size = len(view)
    if size <= limit:
        data = bytes(view)
        if data == _NULL:
            return NOTHING
        return _one_line(mask(data.decode("utf-8", "replace")))
    beginning = mask(bytes(view[: limit + _MARGIN_BYTES]).decode("utf-8", "replace"))
    kept = beginning.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    return _encoded({"truncated": True, "original_bytes": size, "beginning": kept})


def _one_line(text: str) -> Raw:
    if not _is_json(text):
        return _encoded(text)
    if "\n" in text or "\r" in text:
        # Valid JSON has them between tokens only; one record is one line in an export.
        text = text.replace("\n", " ").replace("\r", " ")
    return Raw(text.encode())


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=Raw)
    except RecursionError:
        return False
    except DecodeError:
        return _is_json_with_lone_surrogates(text)
    return True


def _is_json_with_lone_surrogates(text: str) -> bool:
    """msgspec refuses an escaped half of an emoji, which Node servers do send; the standard library takes it."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)


def _metadata(metadata: dict[str, Any], mask: Mask) -> Raw:
    text = bytes(_encoded(metadata)).decode()
    if len(text) > _LARGEST_METADATA:
        kept = {key: metadata[key] for key in ("intent", "tool_variant") if key in metadata}
        text = bytes(_encoded({**kept, "truncated": True, "original_bytes": len(text)})).decode()
    masked = mask(text)
    if masked != text and not _is_json(masked):
        return _encoded({"masked": masked})
    return Raw(masked.encode())


def _encoded(value: Any) -> Raw:
    try:
        return Raw(msgspec.json.encode(value))
    except (UnicodeEncodeError, TypeError):
        # Lone surrogates, or a value that only its text can stand for.
        return Raw(json.dumps(value, default=str, separators=(",", ":")).encode())
