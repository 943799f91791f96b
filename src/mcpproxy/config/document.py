"""Is it JSON, and does every part of it mean one thing? Bytes in, a document out."""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections import Counter
from typing import Any

from msgspec import Struct

from mcpproxy.config.errors import ConfigError, Problem, Report, entry, member, shown

MAX_BYTES = 8 * 1024 * 1024
_MAX_DEPTH = 64
_LARGEST = sys.float_info.max

# Every alternative ends at the end of the text too, so that an unclosed one is found once and not at every character.
_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_COMMAS = re.compile(r'"(?:\\.|[^"\\])*"?|,(?=\s*[}\]])', re.DOTALL)


class Document(Struct, frozen=True):
    """The top-level object as it was written, and whether writing it back would lose comments."""

    value: dict[str, Any]
    has_comments: bool = False


class _Object(dict[str, Any]):
    """An object that remembers which of its keys were written twice."""

    twice: tuple[str, ...] = ()


def decode(data: bytes) -> Document:
    """Read JSON, tolerating a byte-order mark, comments and trailing commas, as editors' files have them."""
    if len(data) > MAX_BYTES:
        raise ConfigError([Problem(path="", what=f"it has {len(data)} bytes", allowed=f"at most {MAX_BYTES} are read")])
    text = _text(data)
    if not text.strip():
        # Not the defaults: an editor that empties the file before it writes must not remove every server.
        raise ConfigError([Problem(path="", what="it is empty", allowed="write {} for the defaults")])
    plain = _without_comments(text)
    value = _parse(_COMMAS.sub(lambda found: found[0] if found[0][0] == '"' else " ", plain))
    return Document(value=checked(value), has_comments=plain != text)


def checked(value: object) -> dict[str, Any]:
    """The same document, once every part of it is known to mean one thing and to survive writing."""
    report = Report()
    if not isinstance(value, dict):
        report.problem("", f"it holds {shown(value, secret=True)}", "it must be an object: { … }")
    else:
        _scan(value, "", 0, report)
    if report.problems:
        raise ConfigError(report.problems)
    assert isinstance(value, dict)
    return value


def _text(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError([Problem(path="", what="it is UTF-16 text", allowed="save it as UTF-8")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"line {line} is not UTF-8 text"
        raise ConfigError([Problem(path="", what=what, allowed="save it as UTF-8")]) from None


def _without_comments(text: str) -> str:
    # Blanks in their place, so that line and column of a later mistake stay true.
    return _TOKENS.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text)


def _parse(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        what = f"line {error.lineno}, column {error.colno}: {_plain(error.msg)}"
    except RecursionError:
        what = "it is nested too deep"
    except ValueError as error:
        what = str(error) if isinstance(error, _ConstantError) else "a number in it has too many digits"
    raise ConfigError([Problem(path="", what=what, allowed="correct the JSON there")])


def _plain(message: str) -> str:
    return message[0].lower() + message[1:]


class _ConstantError(ValueError):
    pass


def _no_constant(name: str) -> object:
    raise _ConstantError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    value = _Object(pairs)
    if len(value) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        value.twice = tuple(key for key, count in counts.items() if count > 1)
    return value


def _scan(value: object, path: str, depth: int, report: Report) -> None:
    if depth > _MAX_DEPTH:
        report.problem(path, "it is nested too deep", f"at most {_MAX_DEPTH} levels")
    elif isinstance(value, dict):
        for key in getattr(value, "twice", ()):
            report.problem(path, f"the key {shown(key)} stands there twice", "keep one")
        for key, item in value.items():
            _scan(key, path, depth, report)
            _scan(item, member(path, str(key)), depth + 1, report)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _scan(item, entry(path, index), depth + 1, report)
    elif isinstance(value, str) and not _is_unicode(value):
        report.problem(path, "a text holds half a character", "write whole Unicode characters")
    elif isinstance(value, int | float) and not abs(value) <= _LARGEST:
        report.problem(path, "a number is too large", "write a smaller one")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
