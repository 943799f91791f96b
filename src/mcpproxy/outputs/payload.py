"""Does this payload decode, and would every parser read the same thing in it?"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from mcpproxy.outputs.guards import count_keys, without_long_texts

_DECODER = msgspec.json.Decoder()
_ESCAPED_COLON = b"\\u003"
_FEW_VALUES = 2_000
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
    if _has_all(raw, value):
        return None
    try:
        return _find(json.loads(raw, object_pairs_hook=_object))
    except RecursionError:
        return [], ""


def _has_all(raw: bytes, value: Any) -> bool:
    """Whether a value has all members that were written: decoding drops repeats."""
    bare = without_long_texts(raw)
    if bare is not raw and bare.count(b",") < _FEW_VALUES:
        return bare.count(b":") == _members(value)
    again = msgspec.json.encode(value)
    # Counting every colon is enough unless one was escaped: strings then gain colons when written again.
    count = count_keys if _ESCAPED_COLON in raw else _colons
    return count(raw) == count(again)


def _members(value: Any) -> int:
    """How many members all objects in it have."""
    found = 0
    rest = [value]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            found += len(node)
            rest.extend(node.values())
        elif isinstance(node, list):
            rest.extend(node)
    return found


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
