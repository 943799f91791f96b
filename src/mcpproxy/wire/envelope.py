"""Which JSON-RPC message do these bytes hold? Bodies stay raw: what an upstream wrote is what we hand on."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcpproxy.wire.errors import InvalidAnswer

RequestId = int | str

# Past this size the slow parser below would hold the event loop for too long.
_TOLERANT_LIMIT = 8 * 1024 * 1024


class Message(Struct, frozen=True):
    """One JSON-RPC message; `params`, `result` and `error` are the bytes between the upstream's own braces."""

    id: RequestId | None = None
    method: str | None = None
    params: bytes = b""
    result: bytes = b""
    error: bytes = b""


class _Envelope(Struct):
    # `Raw | None` would silently drop the bytes, so absence is an empty Raw.
    id: RequestId | float | None = None
    method: str | None = None
    params: Raw = Raw(b"")
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")


class ErrorBody(Struct):
    """The `error` member of an answer."""

    code: int = -32603
    message: str = "unspecified error"
    data: Any = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
_decode_error = msgspec.json.Decoder(ErrorBody).decode
encode = msgspec.json.Encoder().encode

_MEMBER = rb'(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*(?:-?\d{1,18}|"[^"\\]{0,128}"))'
_HEAD = re.compile(rb"\s*\{\s*((?:" + _MEMBER + rb"\s*,\s*)*+)")
_RESULT_KEY = re.compile(rb'"result"\s*:\s*')
_TAIL = re.compile(rb"((?:\s*,\s*" + _MEMBER + rb")*+)\s*\}\s*\Z")
_ID = re.compile(rb'"id"\s*:\s*(?:(-?\d{1,18})|"([^"\\]{0,128})")')


def decode(data: bytes) -> list[Message]:
    """Read one message, or the several of a batch, or raise InvalidAnswer."""
    if data.lstrip()[:1] == b"[":
        try:
            return [_decode_one(bytes(item)) for item in _decode_batch(data)]
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InvalidAnswer(f"not a JSON-RPC batch: {error}") from None
    return [_decode_one(data)]


def _decode_one(data: bytes) -> Message:
    try:
        found = _decode_envelope(data)
        # Raw skips over strings without looking at them; an agent must never be handed broken UTF-8.
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        raise InvalidAnswer("the message is not valid UTF-8") from None
    except (msgspec.MsgspecError, RecursionError):
        return _decode_tolerantly(data)
    return Message(_plain_id(found.id), found.method, bytes(found.params), bytes(found.result), bytes(found.error))


def _plain_id(value: RequestId | float | None) -> RequestId | None:
    # JSON has one number type: a server that echoes 7 as 7.0 means our 7.
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def _decode_tolerantly(data: bytes) -> Message:
    """Read what msgspec refuses and others write: lone surrogates, from servers that cut text in mid-emoji."""
    if len(data) > _TOLERANT_LIMIT:
        raise InvalidAnswer("the message is not JSON that can be read")
    try:
        whole = json.loads(data)
    except RecursionError:
        raise InvalidAnswer("the message is nested too deeply") from None
    except ValueError as error:
        raise InvalidAnswer(f"the message is not JSON: {error}") from None
    if not isinstance(whole, dict):
        raise InvalidAnswer("the message is not a JSON-RPC object")
    method = whole.get("method")
    if method is not None and not isinstance(method, str):
        raise InvalidAnswer("the message's method is not a string")
    identity = whole.get("id")
    message_id = identity if isinstance(identity, int | str) and not isinstance(identity, bool) else None
    if method is not None:
        return Message(message_id, method, params=_dumped(whole, "params"))
    if "result" in whole:
        return Message(message_id, result=_result_span(data))
    return Message(message_id, error=_dumped(whole, "error"))


def _dumped(whole: dict[str, Any], key: str) -> bytes:
    return json.dumps(whole[key]).encode() if key in whole else b""


def _result_span(data: bytes) -> bytes:
    """The bytes of `result` as they were sent: what lies between a plain head and a plain tail."""
    head = _HEAD.match(data)
    start = _RESULT_KEY.match(data, head.end()) if head else None
    tail = _TAIL.search(data, max(start.end(), len(data) - 512)) if start else None
    if start is None or tail is None:
        raise InvalidAnswer("the answer's members stand in an order that cannot be read safely")
    span = data[start.end() : tail.start()]
    try:
        json.loads(span)
    except (ValueError, RecursionError):
        raise InvalidAnswer("the answer's result is not one JSON value") from None
    return span


def salvage_id(head: bytes, tail: bytes) -> RequestId | None:
    """Which request does a broken or oversized answer belong to? Looks only where an envelope keeps its id."""
    front = _HEAD.match(head)
    for members in (front.group(1) if front else b"", _tail_members(tail)):
        found = _ID.search(members)
        if found:
            return int(found[1]) if found[1] else found[2].decode(errors="replace")
    return None


def _tail_members(tail: bytes) -> bytes:
    found = _TAIL.search(tail[-512:])
    return found.group(1) if found else b""


def error_body(raw: bytes) -> ErrorBody:
    """The code and message of an error answer, however loosely it was written."""
    try:
        return _decode_error(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ErrorBody(message=f"malformed error: {raw[:200].decode(errors='replace')}")


def as_dict(raw: bytes) -> dict[str, Any]:
    """A raw body decoded for the SDK, which wants dicts."""
    if not raw:
        return {}
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise InvalidAnswer(f"the body cannot be decoded: {error}") from None
    if not isinstance(value, dict):
        raise InvalidAnswer("the body is not a JSON object")
    return value


def request(request_id: RequestId, method: str, params: bytes) -> bytes:
    """A request with a raw params body."""
    return b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}' % (
        encode(request_id),
        encode(method),
        params or b"{}",
    )


def notification(method: str, params: bytes) -> bytes:
    """A notification; a params member only where there is one."""
    return b'{"jsonrpc":"2.0","method":%s%s}' % (encode(method), b',"params":' + params if params else b"")


def answer(request_id: RequestId, result: bytes) -> bytes:
    """A successful answer with a raw result body."""
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (encode(request_id), result)


def failure(request_id: RequestId | None, code: int, message: str) -> bytes:
    """An error answer."""
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (encode(request_id), encode(ErrorBody(code, message)))


def with_meta(params: bytes, meta: bytes) -> bytes:
    """Put a `_meta` object of the given members last into a raw params object that has none."""
    if not meta:
        return params
    inner = params.rstrip()[:-1].rstrip()
    comma = b"" if inner.endswith(b"{") else b","
    return b'%s%s"_meta":{%s}}' % (inner, comma, meta)


def one_line(raw: bytes) -> bytes:
    """The same JSON on one line: a newline between tokens would smuggle a second message onto stdio."""
    if b"\n" in raw or b"\r" in raw:
        return raw.replace(b"\n", b" ").replace(b"\r", b" ")
    return raw
