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


def prepare(record: Record, writer: str, position: int, max_payload_bytes: int, mask: Mask) -> Linked:
    """The record as it is stored at this place of the chain."""
    arguments, response = _text(record.arguments, max_payload_bytes), _text(record.response, max_payload_bytes)
    metadata = _metadata(record.metadata)
    names = (record.server_name, record.tool_name, record.request_id, record.session_id, record.client_name)
    # One look at everything instead of one at each: nearly every record is plain and has no secret in it.
    named = " ".join([text for text in names if text])
    everything = f"{named} {record.error_message} {arguments} {response} {metadata}"
    if mask(everything) == everything:
        mask = str
    if mask is not str or len(named) > _LONGEST_NAME or not everything.isascii() or "\0" in named:
        names = tuple([text and name(mask(text)) for text in names])  # type: ignore[assignment]
    server_name, tool_name, request_id, session_id, client_name = names
    return Linked(
        id=record.id,
        type=record.type,
        source=record.source,
        server_name=server_name,
        tool_name=tool_name,
        status=record.status,
        error_message=record.error_message and _error(record.error_message, mask),
        arguments=_payload(record.arguments, mask(arguments), max_payload_bytes),
        response=_payload(record.response, mask(response), max_payload_bytes),
        duration_ms=record.duration_ms,
        timestamp=record.timestamp,
        request_id=request_id,
        session_id=session_id,
        client_name=client_name,
        metadata=_still_json(metadata, mask(metadata)),
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


def name(text: str) -> str:
    """A name or an id in one piece, and short enough for an index."""
    text = clean(text)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def clean(text: str) -> str:
    """The text without what a database refuses: NUL and lone surrogates become U+FFFD."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def _error(text: str, mask: Mask) -> str:
    kept = clean(mask(text[: _LONGEST_ERROR + _MARGIN_BYTES]))
    if len(text) <= _LONGEST_ERROR:
        return kept
    return f"{kept[:_LONGEST_ERROR]}… (cut: {len(text)} characters in all)"


def _text(raw: Raw, limit: int) -> str:
    """As much of a payload as may be kept, and a little more."""
    view = memoryview(raw)
    return str(view if len(view) <= limit else view[: limit + _MARGIN_BYTES], "utf-8", "replace")


def _payload(raw: Raw, masked: str, limit: int) -> Raw:
    """The JSON to store: the payload on one line, or its beginning with a mark that tells its size."""
    if masked == "null":
        return NOTHING
    size = len(memoryview(raw))
    if size <= limit:
        return _one_line(masked)
    kept = masked.encode()[:limit].decode("utf-8", "ignore")
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


def _metadata(metadata: dict[str, Any]) -> str:
    text = bytes(_encoded(metadata)).decode()
    if len(text) > _LARGEST_METADATA:
        kept = {key: metadata[key] for key in ("intent", "tool_variant") if key in metadata}
        text = bytes(_encoded({**kept, "truncated": True, "original_bytes": len(text)})).decode()
    return text


def _still_json(text: str, masked: str) -> Raw:
    if masked != text and not _is_json(masked):
        return _encoded({"masked": masked})
    return Raw(masked.encode())


def _encoded(value: Any) -> Raw:
    try:
        return Raw(msgspec.json.encode(value))
    except (UnicodeEncodeError, TypeError):
        # Lone surrogates, or a value that only its text can stand for.
        return Raw(json.dumps(value, default=str, separators=(",", ":")).encode())
