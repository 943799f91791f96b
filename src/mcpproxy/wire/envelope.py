"""Which JSON-RPC message do these bytes hold? Bodies stay raw: what an upstream wrote is what we hand on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NoReturn

import msgspec
from msgspec import Raw, Struct

from mcpproxy.wire.errors import InvalidAnswer

RequestId = int | str

TOLERANT_LIMIT = 8 * 1024 * 1024
"""Past this size a slow parser would hold the event loop for too long."""
_MOST_ENTRIES = 20_000
"""So many members or elements it reads of one object or array: twice as many as a server may have tools."""
# No server of today sends batches at all; a large one of tiny elements would cost fifty times its size.
_BATCH_LIMIT = 1024 * 1024
_MOST_IN_BATCH = 1000
_ENDS = 512
"""How much of either end of a broken message is looked at for its id."""
_LONG = 4 * 1024
"""From here on it pays to tell a message by its ends."""


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


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
_decode_error = msgspec.json.Decoder(ErrorBody).decode
_decode_id = msgspec.json.Decoder(int | str | float | None).decode
_decode_method = msgspec.json.Decoder(str | None).decode
encode = msgspec.json.Encoder().encode

# Only the places of values matter to it: as floats, integers of any length are read without complaint.
_scan = json.JSONDecoder(parse_int=float, parse_constant=_refuse).raw_decode
_loads = partial(json.loads, parse_constant=_refuse)
_SPACE = re.compile(r"[ \t\n\r]*")

_MEMBER = rb'(?:"jsonrpc"\s*:\s*"2\.0"|"id"\s*:\s*(?:-?\d{1,18}|"[^"\\]{0,128}"))'
_HEAD = re.compile(rb"\s*\{\s*((?:" + _MEMBER + rb"\s*,\s*)*+)")
_NO_ANSWER = re.compile(rb'"(?:method|params)"')
_TAIL = re.compile(rb"((?:\s*,\s*" + _MEMBER + rb")*+)\s*\}\s*\Z")
_ID = re.compile(rb'"id"\s*:\s*(?:(-?\d{1,18})|"([^"\\]{0,128})")')
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

# What nearly every server sends, those of the Python SDK and those of the TypeScript SDK.
_ANSWER_HEAD = re.compile(rb'\{"jsonrpc":"2\.0","id":(0|[1-9]\d{0,17}),"result":(?=\{"\w)')
_RESULT_FIRST = re.compile(rb'\{"result":(?=\{"\w)')
_ANSWER_TAIL = re.compile(rb'(?<=\}),"jsonrpc":"2\.0","id":(0|[1-9]\d{0,17})\}\Z')
# There may be another member of the message's own: that takes a closer look.
_MORE_MEMBERS = re.compile(rb'"(?:error|_meta)":')


def decode(data: bytes | bytearray) -> list[Message]:
    """Read one message, or the several of a batch, or raise InvalidAnswer."""
    return [decode_one(part) for part in split(data)]


def split(data: bytes | bytearray) -> Sequence[bytes | bytearray]:
    """The messages of a batch, each as it was written; anything else is one message."""
    if (data.lstrip() if data[:1].isspace() else data)[:1] != b"[":
        return (data,)
    if len(data) > _BATCH_LIMIT:
        raise InvalidAnswer(f"the batch is larger than {_BATCH_LIMIT} bytes")
    try:
        found: Sequence[bytes | Raw] = _decode_batch(data)
    except (msgspec.MsgspecError, RecursionError):
        found = elements(data)
    if len(found) > _MOST_IN_BATCH:
        raise InvalidAnswer(f"the batch has more than {_MOST_IN_BATCH} messages")
    return [bytes(item) for item in found]


def decode_one(data: bytes | bytearray) -> Message:
    """Read one message that is no batch, or raise InvalidAnswer."""
    try:
        if len(data) > _LONG and (long := _long_answer(data)) is not None:
            return long
        found = _decode_envelope(data)
        # Raw skips over strings without looking at them; an agent must never be handed broken UTF-8.
        if not data.isascii():
            data.decode()
    except UnicodeDecodeError:
        raise InvalidAnswer("the message is not valid UTF-8") from None
    except (msgspec.MsgspecError, RecursionError):
        return _decode_tolerantly(data)
    return Message(_plain_id(found.id), found.method, bytes(found.params), bytes(found.result), bytes(found.error))


def _long_answer(data: bytes | bytearray) -> Message | None:
    """An answer whose ends are those of an answer: whoever reads the result finds out what is between them.

    Going through a megabyte takes longer than all that we do with it, and once is enough.
    """
    if _MORE_MEMBERS.search(data, len(data) - _ENDS):
        return None
    if (head := _ANSWER_HEAD.match(data)) is not None and data.endswith(b"}}"):
        request_id, start, end = int(head[1]), head.end(), -1
    elif (first := _RESULT_FIRST.match(data)) and (tail := _ANSWER_TAIL.search(data, len(data) - _ENDS)) is not None:
        request_id, start, end = int(tail[1]), first.end(), tail.start()
    else:
        return None
    result = bytes(memoryview(data)[start:end])
    if not result.isascii():
        result.decode()
    return Message(id=request_id, result=result)


def _plain_id(value: RequestId | float | None) -> RequestId | None:
    # JSON has one number type: a server that echoes 7 as 7.0 means our 7.
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def _decode_tolerantly(data: bytes | bytearray) -> Message:
    """Read what msgspec refuses and others write: lone surrogates, from servers that cut text in mid-emoji."""
    found = members(data)
    try:
        message_id = _plain_id(_decode_id(found.get("id", b"null")))
    except (msgspec.MsgspecError, ValueError):
        message_id = None  # it cannot be one of ours
    try:
        method = _decode_method(found.get("method", b"null"))
    except msgspec.MsgspecError:
        raise InvalidAnswer("the message's method is not a string") from None
    return Message(message_id, method, found.get("params", b""), found.get("result", b""), found.get("error", b""))


def members(data: bytes | bytearray) -> dict[str, bytes]:
    """The members of an object, each value as it was written, lone surrogates and all; or raise InvalidAnswer."""
    return {str(key): value for key, value in _entries(data, "{", "}")}


def elements(data: bytes | bytearray) -> list[bytes]:
    """The elements of an array, each as it was written, lone surrogates and all; or raise InvalidAnswer."""
    return [value for _, value in _entries(data, "[", "]")]


def _entries(data: bytes | bytearray, opening: str, closing: str) -> list[tuple[str | None, bytes]]:
    if len(data) > TOLERANT_LIMIT:
        raise InvalidAnswer("the message is not JSON that can be read")
    try:
        walk = islice(_walk(data.decode(), opening, closing), _MOST_ENTRIES + 1)
        found = [(key, value.encode()) for key, value in walk]
    except UnicodeDecodeError:
        raise InvalidAnswer("the message is not valid UTF-8") from None
    except RecursionError:
        raise InvalidAnswer("the message is nested too deeply") from None
    except ValueError as error:
        raise InvalidAnswer(f"the message is not JSON: {error}") from None
    if len(found) > _MOST_ENTRIES:
        raise InvalidAnswer(f"the message needs a slow parser, and has more than {_MOST_ENTRIES} entries in one place")
    return found


def _walk(text: str, opening: str, closing: str) -> Iterator[tuple[str | None, str]]:
    """Key (in an object) and raw value of each entry; raises ValueError where it is not JSON."""
    at = _after(text, 0, opening)
    if text.startswith(closing, at):
        at = _after(text, at, closing)
        more = False
    else:
        more = True
    while more:
        key = None
        if opening == "{":
            key, at = _scan(text, at)
            if not isinstance(key, str):
                raise ValueError("a key is not a string")
            at = _after(text, at, ":")
        end = _scan(text, at)[1]
        yield key, text[at:end]
        more = text.startswith(",", _space(text, end))
        at = _after(text, end, "," if more else closing)
    if at != len(text):
        raise ValueError("something follows its end")


def _after(text: str, at: int, mark: str) -> int:
    """The place after a mark and the space around it."""
    at = _space(text, at)
    if not text.startswith(mark, at):
        raise ValueError(f"a {mark!r} is missing at character {at}")
    return _space(text, at + 1)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def salvage_id(head: bytes | bytearray, tail: bytes | bytearray) -> RequestId | None:
    """Which request does a broken or oversized answer belong to? Looks only where an envelope keeps its id.

    `tail` is empty where the end of the message was never seen: what stands last then belongs to something inside.
    """
    front = _HEAD.match(head)
    if front is not None and _NO_ANSWER.match(head, front.end()):
        return None  # a request or notice of the server's own; its ids are not ours
    back = _TAIL.search(tail[-_ENDS:])
    for found in (front, back):
        identity = _ID.search(found.group(1)) if found else None
        if identity:
            return int(identity[1]) if identity[1] else identity[2].decode(errors="replace")
    return None


def salvage_whole(data: bytes | bytearray) -> RequestId | None:
    """The same for a broken message that is there in full: its end counts only where its brackets add up."""
    found = salvage_id(data[:_ENDS], b"")
    if found is not None or len(data) > TOLERANT_LIMIT:
        return found
    bare = _STRING.sub(b"", data)
    whole = bare.count(b"{") == bare.count(b"}") and bare.count(b"[") == bare.count(b"]")
    return salvage_id(data[:_ENDS], data[-_ENDS:]) if whole else None


def error_body(raw: bytes) -> ErrorBody:
    """The code and message of an error answer, however loosely it was written."""
    try:
        return _decode_error(raw)
    except (msgspec.MsgspecError, RecursionError):
        return ErrorBody(message=f"malformed error: {raw[:200].decode(errors='replace')}")


def as_dict(raw: bytes) -> dict[str, Any]:
    """A raw body decoded for the SDK, which wants dicts."""
    if not raw:
        return {}
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        if len(raw) > TOLERANT_LIMIT:
            raise InvalidAnswer("the body is not JSON that can be read") from None
        try:
            # A lone surrogate becomes a question mark: the SDK's models refuse any text that holds one.
            value = json.loads(json.dumps(_loads(raw), ensure_ascii=False).encode(errors="replace"))
        except (ValueError, RecursionError) as error:
            raise InvalidAnswer(f"the body cannot be decoded: {error}") from None
    if not isinstance(value, dict):
        raise InvalidAnswer("the body is not a JSON object")
    return value


def request(request_id: RequestId, method: str, params: bytes) -> bytes:
    """A request with a raw params body."""
    head = b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":' % (encode(request_id), encode(method))
    return b"".join((head, params or b"{}", b"}"))


def notification(method: str, params: bytes) -> bytes:
    """A notification; a params member only where there is one."""
    return b'{"jsonrpc":"2.0","method":%s%s}' % (encode(method), b',"params":' + params if params else b"")


def answer(request_id: RequestId, result: bytes) -> bytes:
    """A successful answer with a raw result body."""
    return answer_to(encode(request_id), result)


def answer_to(request_id: bytes, result: bytes) -> bytes:
    """The same for a raw id."""
    # Not by `%`, which copies what is long several times.
    return b"".join((b'{"jsonrpc":"2.0","id":', request_id, b',"result":', result, b"}"))


def failure(request_id: RequestId | None, code: int, message: str) -> bytes:
    """An error answer."""
    return b'{"jsonrpc":"2.0","id":%s,"error":%s}' % (encode(request_id), encode({"code": code, "message": message}))


def with_meta(params: bytes, meta: bytes) -> bytes:
    """Put a `_meta` object of the given members last into a raw params object that has none."""
    if not meta:
        return params
    inner = (params or b"{}").rstrip()[:-1].rstrip()
    comma = b"" if inner.endswith(b"{") else b","
    return b"".join((inner, comma, b'"_meta":{', meta, b"}}"))


def one_line(raw: bytes) -> bytes:
    """The same JSON on one line: a newline between tokens would smuggle a second message onto stdio."""
    if b"\n" in raw or b"\r" in raw:
        return raw.replace(b"\n", b" ").replace(b"\r", b" ")
    return raw
