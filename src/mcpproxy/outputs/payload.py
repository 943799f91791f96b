"""Does this payload decode, and would every parser read the same thing in it?"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from mcpproxy.outputs.guards import count_keys

_DECODER = msgspec.json.Decoder()
_ESCAPED_COLON = b"\\u003"
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class UndecodableError(Exception):
    """The payload is not JSON that can be read the same way everywhere. Its text says what was expected."""


class _Repeated(dict[str, Any]):
    """An object in which a key occurs more than once."""

    key: str


def decode(raw: bytes) -> Any:
    """Decode JSON, or raise `UndecodableError`; no other exception leaves here."""
    try:
        return _DECODER.decode(raw)
    except UnicodeDecodeError:
        expected = "text in valid UTF-8"
    except RecursionError:
        expected = "fewer levels of nesting"
    except MemoryError:
        expected = "a payload that fits in memory"
    except msgspec.ValidationError:
        expected = "numbers within the range of a 64-bit float and at most 4,300 digits"
    except msgspec.DecodeError:
        expected = (
            "well-formed JSON whose surrogate escapes come in pairs"
            if _SURROGATE_ESCAPE.search(raw)
            else "well-formed JSON"
        )
    raise UndecodableError(expected)


def repeated_key(raw: bytes, value: Any) -> tuple[list[str | int], str] | None:
    """Find a key that occurs twice in one object: the path of the object, and the key."""
    # Decoding drops repeats, so a value that had any is written again with fewer members.
    again = msgspec.json.encode(value)
    # Counting every colon is enough unless one was escaped: strings then gain colons when written again.
    count = count_keys if _ESCAPED_COLON in raw else _colons
    if count(raw) == count(again):
        return None
    try:
        return _find(json.loads(raw, object_pairs_hook=_object))
    except RecursionError:
        return [], ""


def _colons(raw: bytes) -> int:
    return raw.count(b":")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    marked = _Repeated(plain)
    seen: set[str] = set()
    marked.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return marked


def _find(value: Any) -> tuple[list[str | int], str] | None:
    """Walk in document order; only the path to the first repeat is built."""
    stack: list[tuple[list[str | int], Any]] = [([], value)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, _Repeated):
            return path, node.key
        if isinstance(node, dict):
            stack.extend(([*path, key], child) for key, child in node.items())
        elif isinstance(node, list):
            stack.extend(([*path, index], child) for index, child in enumerate(node))
    return None
