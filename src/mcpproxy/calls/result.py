"""What did the tool answer? A view of a raw result, and the few ways in which it may be changed on its way."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from mcpproxy.calls.longtexts import LARGE, bare_of
from mcpproxy.calls.spans import elements, members, replaced, without
from mcpproxy.policy.verdict import Refusal
from mcpproxy.wire.envelope import TOLERANT_LIMIT

MAX_BLOCKS = 10_000
"""Content blocks that are looked at. Some servers make one of every row; millions would take seconds."""


class NotAResult(ValueError):
    """The upstream's answer is no tool result."""


class ResultView(Struct, rename="camel"):
    """The parts of a tool result that we look at; all of it stays raw."""

    content: Raw = Raw(b"")
    structured_content: Raw = Raw(b"")
    is_error: bool = False
    result_type: str = "complete"


class TextBlock(Struct):
    """A content block, as far as it matters whether it is a text."""

    type: str = ""
    text: str = ""


_view = msgspec.json.Decoder(ResultView).decode
_blocks = msgspec.json.Decoder(list[Raw]).decode
_text_block = msgspec.json.Decoder(TextBlock).decode


def view(result: bytes) -> ResultView:
    """Look at a raw result without changing a byte of it."""
    if len(result) >= LARGE and (shown := _view_past_texts(result)) is not None:
        return shown
    try:
        return _view(result)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _view_tolerantly(result)


def _view_past_texts(result: bytes) -> ResultView | None:
    """The same, without going through long texts; None where it takes a closer look."""
    bare = bare_of(result)
    if bare is None:
        return None
    try:
        shown = _view(bare.text)
        found = members(bare.text.decode("latin-1"))  # a character for each byte
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if not shown.result_type:  # that may have been a long one
        return None
    whole = memoryview(result)

    def raw(key: str) -> Raw:
        span = found.get(key)
        return Raw(whole[bare.place(span.start) : bare.place(span.end)]) if span else Raw(b"")

    return ResultView(raw("content"), raw("structuredContent"), shown.is_error, shown.result_type)


def _view_tolerantly(result: bytes) -> ResultView:
    """For what msgspec refuses though others write it, such as half an emoji."""
    if len(result) > TOLERANT_LIMIT:
        raise NotAResult("the result is not JSON that can be read")
    try:
        text = result.decode()
        found = members(text)
    except (ValueError, RecursionError) as error:
        raise NotAResult(f"the result cannot be read: {error}") from None

    def raw(key: str) -> Raw:
        return Raw(text[found[key].start : found[key].end].encode()) if key in found else Raw(b"")

    is_error, result_type = bytes(raw("isError")), bytes(raw("resultType"))
    if is_error not in (b"", b"true", b"false"):
        raise NotAResult("isError is neither true nor false")
    return ResultView(
        raw("content"),
        raw("structuredContent"),
        is_error == b"true",
        "complete" if result_type in (b"", b'"complete"') else result_type.decode().strip('"'),
    )


def structured(shown: ResultView) -> bytes | None:
    """The raw structuredContent, or None where there is none."""
    data = bytes(shown.structured_content)
    return None if data in (b"", b"null") else data


def has_long_text(shown: ResultView, limit: int) -> bool:
    """Whether the content could hold a text block over the limit; says no quickly to nearly all."""
    if limit <= 0 or len(memoryview(shown.content)) <= limit:
        return False
    content = bytes(shown.content)
    if not _may_be_many(content):
        return True
    # Past all strings that are short enough, is there one that is not?
    bare = content.replace(b"\\\\", b"..").replace(b'\\"', b"..")
    return re.match(rb'(?:[^"]*+"[^"]{0,%d}+")*+[^"]*+"[^"]{%d}' % (limit - 1, limit), bare) is not None


def _may_be_many(content: bytes) -> bool:
    return content.count(b",") >= MAX_BLOCKS


def blocks(shown: ResultView, most: int = MAX_BLOCKS) -> list[bytes]:
    """The content blocks, each raw; raises NotAResult where there are more than that."""
    found, more = _first_blocks(bytes(shown.content), most)
    if more:
        raise NotAResult(f"it has more than {most} content blocks")
    return found


def first_blocks(shown: ResultView, most: int) -> list[bytes]:
    """The first content blocks, each raw."""
    return _first_blocks(bytes(shown.content), most)[0]


def _first_blocks(content: bytes, most: int) -> tuple[list[bytes], bool]:
    try:
        if not _may_be_many(content):
            found = [bytes(block) for block in _blocks(content)]
            return found[:most], len(found) > most
        raw, more = elements(content.decode(), most)
        return [block.encode() for block in raw], more
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return [], False


def text_of(block: bytes) -> str | None:
    """The text of a text block; None for every other kind."""
    try:
        read = _text_block(block)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return read.text if read.type == "text" else None


def with_text(block: bytes, text: str) -> bytes:
    """The same block with another text, all else untouched."""
    source = block.decode()
    return replaced(source, members(source)["text"], _quoted(text)).encode()


def with_content(result: bytes, content: list[bytes]) -> bytes:
    """The same result with other content blocks, all else untouched."""
    source = result.decode()
    return replaced(source, members(source)["content"], f"[{','.join(b.decode() for b in content)}]").encode()


def without_structured(result: bytes) -> bytes:
    """The same result without structuredContent, for a client that takes only objects there."""
    source = result.decode()
    return without(source, members(source)["structuredContent"]).encode()


def complete(result: bytes) -> bytes:
    """The same result with the `resultType` that 2026-07-28 asks for, where an older upstream left it out."""
    body = result.lstrip()[1:]
    comma = b"" if body.lstrip().startswith(b"}") else b","
    return b'{"resultType":"complete"' + comma + body


def refused(refusal: Refusal) -> bytes:
    """A refusal as the tool result that an agent gets."""
    return msgspec.json.encode(
        {
            "content": [{"type": "text", "text": refusal.message}],
            "structuredContent": {"error": refusal},
            "isError": True,
            "resultType": "complete",
        }
    )


def plain(value: object) -> bytes:
    """A result of our own tools: the value as structured content and as text."""
    body = msgspec.json.encode(value)
    return b'{"content":[{"type":"text","text":%s}],"structuredContent":%s,"isError":false,"resultType":"complete"}' % (
        msgspec.json.encode(body.decode()),
        body,
    )


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
