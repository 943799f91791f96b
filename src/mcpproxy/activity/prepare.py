"""What of a record is kept? Secrets masked, payloads cut to size and marked, every text fit for both databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import DecodeError, Raw, Struct

from mcpproxy.activity.record import INTENT_TYPES, NOTHING, Linked, Record, decoded
from mcpproxy.activity.words import searchable
from mcpproxy.policy.intent import Intent

Mask = Callable[[str], str]

# A secret that lies across the cut must still be whole when it is masked.
_MARGIN_BYTES: Final = 8192
_LONGEST_NAME: Final = 256
_LONGEST_ERROR: Final = 8192
_LARGEST_METADATA: Final = 262_144
_json: Final = msgspec.json.Decoder(Raw)


class Kept(Struct, frozen=True):
    """A record as it is stored: what the chain is over, and beside it the columns that are texts or worked out."""

    record: Linked
    arguments: str | None
    response: str | None
    metadata: str
    intent_type: str | None
    search: str


class _Declared(Struct):
    operation_type: Any = None
    reason: Any = None


class _About(Struct):
    intent: _Declared | None = None


_about: Final = msgspec.json.Decoder(_About)


def prepare(record: Record, writer: str, position: int, max_payload_bytes: int, mask: Mask) -> Kept:
    """What is kept of a record at this place of the chain."""
    arguments, response = _text(record.arguments, max_payload_bytes), _text(record.response, max_payload_bytes)
    metadata, error_message = _metadata(record.metadata), record.error_message
    names = (record.server_name, record.tool_name, record.request_id, record.session_id, record.client_name)
    # One look at everything instead of one at each: nearly every record is plain and has no secret in it.
    named = " ".join([text for text in names if text])
    everything = f"{named} {error_message} {arguments} {response} {metadata}"
    if not everything.isascii() or len(named) > _LONGEST_NAME or "\0" in named or mask(everything) != everything:
        names = tuple([text and name(mask(text)) for text in names])  # type: ignore[assignment]
        error_message = error_message and _error(error_message, mask)
        arguments, response, metadata = mask(arguments), mask(response), _still_json(metadata, mask(metadata))
        intent_type, reason = _intent(metadata)
    else:
        error_message = error_message and _error(error_message, str)
        intent_type, reason = _declared(record.metadata.get("intent")) or _intent(metadata)
    kept_arguments = _payload(record.arguments, arguments, max_payload_bytes)
    kept_response = _payload(record.response, response, max_payload_bytes)
    server_name, tool_name, request_id, session_id, client_name = names
    return Kept(
        Linked(
            id=record.id,
            type=record.type,
            source=record.source,
            server_name=server_name,
            tool_name=tool_name,
            status=record.status,
            error_message=error_message,
            arguments=_raw(kept_arguments),
            response=_raw(kept_response),
            duration_ms=record.duration_ms,
            timestamp=record.timestamp,
            request_id=request_id,
            session_id=session_id,
            client_name=client_name,
            metadata=Raw(metadata.encode()),
            writer=writer,
            position=position,
        ),
        kept_arguments,
        kept_response,
        metadata,
        intent_type,
        searchable(tool_name, error_message, reason),
    )


def keep(linked: Linked) -> Kept:
    """The same for a record that was prepared before."""
    texts = [bytes(raw).decode() for raw in (linked.arguments, linked.response, linked.metadata)]
    arguments, response = (None if text == "null" else text for text in texts[:2])
    return Kept(linked, arguments, response, texts[2], *derived(linked))


def derived(linked: Linked) -> tuple[str | None, str]:
    """What is worked out of a stored record to find it by: the intent's operation type, and the words of its text."""
    intent_type, reason = _intent(bytes(linked.metadata).decode())
    return intent_type, searchable(linked.tool_name, linked.error_message, reason)


def _declared(intent: Any) -> tuple[str | None, str | None] | None:
    """The same of an intent as the policy made it, whose text need not be read back."""
    if isinstance(intent, Intent) and (intent.reason is None or intent.reason.isascii()):
        return intent.operation_type, intent.reason
    return None


def _intent(metadata: str) -> tuple[str | None, str | None]:
    """The operation type and the reason of a call's intent."""
    if '"intent"' not in metadata:
        return None, None
    try:
        intent = _about.decode(metadata).intent
    except (DecodeError, RecursionError):
        # Lone surrogates, or metadata of another form.
        found = decoded(metadata)
        intent = found.get("intent") if isinstance(found, dict) else None
        intent = msgspec.convert(intent, _Declared) if isinstance(intent, dict) else None
    if intent is None:
        return None, None
    operation, reason = intent.operation_type, intent.reason
    return operation if operation in INTENT_TYPES else None, reason if isinstance(reason, str) else None


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
    if raw is NOTHING:
        return "null"
    view = memoryview(raw)
    return str(view if len(view) <= limit else view[: limit + _MARGIN_BYTES], "utf-8", "replace")


def _payload(raw: Raw, text: str, limit: int) -> str | None:
    """The JSON to store: the payload on one line, or its beginning with a mark that tells its size."""
    if text == "null":
        return None
    size = len(memoryview(raw))
    if size > limit:
        kept = text.encode()[:limit].decode("utf-8", "ignore")
        return _encoded({"truncated": True, "original_bytes": size, "beginning": kept})
    if not _is_json(text):
        return _encoded(text)
    if "\n" in text or "\r" in text:
        # Valid JSON has them between tokens only; one record is one line in an export.
        return text.replace("\n", " ").replace("\r", " ")
    return text


def _raw(text: str | None) -> Raw:
    return NOTHING if text is None else Raw(text.encode())


def _is_json(text: str) -> bool:
    try:
        _json.decode(text)
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
    text = _encoded(metadata)
    if len(text) > _LARGEST_METADATA:
        kept = {key: metadata[key] for key in ("intent", "tool_variant") if key in metadata}
        text = _encoded({**kept, "truncated": True, "original_bytes": len(text)})
    return text


def _still_json(text: str, masked: str) -> str:
    return masked if masked == text or _is_json(masked) else _encoded({"masked": masked})


def _encoded(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, TypeError):
        # Lone surrogates, or a value that only its text can stand for.
        return json.dumps(value, default=str, separators=(",", ":"))
