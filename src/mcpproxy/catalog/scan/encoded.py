"""What is written in code here? Base64, hexadecimal, percent, entity and escape codes that turn out to be text."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from mcpproxy.catalog.scan.disguise import Reading

MAX_BLOBS: Final = 40
MAX_BLOB: Final = 8 * 1024
_LAYERS: Final = 2

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9_-]{24,}={0,2}")
_HEX: Final = re.compile(r"(?:0x)?([0-9A-Fa-f]{20,})")
_HEX_ESCAPES: Final = re.compile(r"(?:(?:\\x|0x)[0-9A-Fa-f]{2}[ ,]?){6,}")
_CODED: Final = (
    ("written in percent codes", "%", re.compile("%[0-9A-Fa-f]{2}"), unquote),
    ("written in character entities", "&", re.compile("&#?[0-9A-Za-z]{2,8};"), html.unescape),
    (
        "written in unicode escapes",
        "\\u",
        re.compile(r"\\u00[0-7][0-9A-Fa-f]"),
        lambda text: re.sub(r"\\u00([0-7][0-9A-Fa-f])", lambda code: chr(int(code[1], 16)), text),
    ),
)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_=-]{16}")
_FEW_CODES: Final = 3
_PRINTABLE: Final = re.compile(r"[\t\n\r -~]+")


def decoded(reading: Reading) -> Iterator[Reading]:
    """Every text that is written in code in this one; code within code is followed once."""
    if reading.text.startswith("data:image/"):
        return
    layer = [reading]
    for _ in range(_LAYERS):
        layer = [found for source in layer for found in _decoded_once(source)]
        yield from layer


def _decoded_once(reading: Reading) -> Iterator[Reading]:
    text = reading.text
    if len(text) < 16:
        return
    for count, (blob, (start, end), how) in enumerate(_blobs(text)):
        if count == MAX_BLOBS:
            return
        yield Reading(reading.piece, blob, whole=reading.span(start, end), disguise=how)
    for how, sign, code, decode in _CODED:
        if sign not in text:
            continue
        first = code.search(text)
        if first and len(code.findall(text[: MAX_BLOB * 2])) >= _FEW_CODES:
            yield Reading(
                reading.piece, decode(text[: MAX_BLOB * 2]), whole=reading.span(first.start(), len(text)), disguise=how
            )


def _blobs(text: str) -> Iterator[tuple[str, tuple[int, int], str]]:
    if "x" in text:
        yield from _escapes(text)
    if not _RUN.search(text):
        return
    for found in _HEX.finditer(text):
        digits = found[1][:MAX_BLOB]
        if (blob := _text(bytes.fromhex(digits[: len(digits) // 2 * 2]))) is not None:
            yield blob, found.span(), "written in hexadecimal"
    for found in _BASE64.finditer(text):
        if (blob := _from_base64(found[0][:MAX_BLOB])) is not None:
            yield blob, found.span(), "written in base64"


def _escapes(text: str) -> Iterator[tuple[str, tuple[int, int], str]]:
    for found in _HEX_ESCAPES.finditer(text):
        code = bytes(int(pair, 16) for pair in re.findall(r"[\\0]x([0-9A-Fa-f]{2})", found[0][:MAX_BLOB]))
        if (blob := _text(code)) is not None:
            yield blob, found.span(), "written in hexadecimal"


def _from_base64(code: str) -> str | None:
    bare = code.rstrip("=").translate(_URL_SAFE)
    bare = bare[: len(bare) - (len(bare) % 4 == 1)]
    try:
        return _text(base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))
    except (binascii.Error, ValueError):
        return None


def _text(code: bytes) -> str | None:
    """The code as text, where it is some."""
    if len(code) < 10:
        return None
    try:
        text = code.decode("ascii")
    except UnicodeDecodeError:
        return None
    return text if _PRINTABLE.fullmatch(text) else None


_URL_SAFE: Final = str.maketrans("-_", "+/")
