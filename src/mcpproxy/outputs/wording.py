"""How is a violation put into words? What an agent reads holds nothing of the payload; the record may."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

# Text from an approved schema is bounded like any other: an enum may be long, a pattern may be a page.
_SCHEMA_TEXT = 60
_FOUND_TEXT = 80
_PATH_TEXT = 160
# What the record's mask sees of a value: enough that a secret is not cut before it is recognised.
_BEFORE_MASK = 512
_LIMITS = {
    "minimum": "a number of at least {}",
    "maximum": "a number of at most {}",
    "exclusiveMinimum": "a number above {}",
    "exclusiveMaximum": "a number below {}",
    "multipleOf": "a multiple of {}",
    "minLength": "a string of at least {} characters",
    "maxLength": "a string of at most {} characters",
    "pattern": "a string matching the pattern {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
    "const": "{}",
    "contentEncoding": "a string in the encoding {}",
    "contentMediaType": "a string that holds {}",
    "$ref": "a value that fits the schema {}",
}
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_FIXED = {
    "contains": "items that fit 'contains' in the number the schema asks for",
    "dependencies": "a value that fits the schema's 'dependencies'",
    "false": "nothing here",
    "no key": "no such key",
    "no item": "no such item",
    "not": "a value that does not fit the schema under 'not'",
    "propertyNames": "a key name that fits the schema's 'propertyNames'",
    "unevaluatedItems": "no items beyond those the schema allows",
    "unevaluatedProperties": "no keys beyond those the schema allows",
    "uniqueItems": "items that all differ",
}

Mask = Callable[[str], str]


class Violation(msgspec.Struct, frozen=True):
    """One way in which a value breaks a schema. `place` and `expected` are fit for an agent, the rest is not."""

    place: str
    expected: str
    path: str
    found: str
    schema_path: str = ""

    def for_agent(self) -> str:
        """Say where and what was expected, with nothing of the payload."""
        return f"{self.place}: expected {self.expected}"

    def for_record(self, mask: Mask) -> str:
        """Say also what was found. The mask sees the value before it is shortened."""
        return (
            f"{place_text(mask(self.path))}: expected {self.expected}, found {shorten(mask(self.found), _FOUND_TEXT)}"
        )


def expected(keyword: str, argument: Any = None) -> str:
    """Say what a keyword of the schema asks for."""
    if keyword in _FIXED:
        return _FIXED[keyword]
    if keyword in _LIMITS:
        text = argument if keyword in ("pattern", "$ref") else _json(argument)
        phrase = _LIMITS[keyword].format(shorten(str(text)))
        return phrase.removesuffix("s") if argument == 1 and keyword in _COUNTS else phrase
    if keyword == "type":
        names = argument if isinstance(argument, list) else [argument]
        return shorten(" or ".join(map(str, names)))
    if keyword == "enum":
        return shorten(f"one of {', '.join(map(_json, argument[:20]))}", 2 * _SCHEMA_TEXT)
    if keyword in ("anyOf", "oneOf"):
        how = "at least" if keyword == "anyOf" else "exactly"
        return f"a value that fits {how} one of the {len(argument)} schemas under '{keyword}'"
    return "a value that fits the declared schema"


def missing_key(name: str, because: str | None = None) -> str:
    """Say that a key which the schema names is missing."""
    reason = f", since {shorten(_json(because))} is there" if because is not None else ""
    return f"the key {shorten(_json(name))}{reason}"


def found(value: Any) -> str:
    """Describe a value for the record: scalars as they are, containers by what is in them."""
    if isinstance(value, dict):
        keys = ", ".join(_json(key[:_FOUND_TEXT]) for key in islice(value, 20))
        return f"an object with the keys {keys}" if value else "an empty object"
    if isinstance(value, list):
        return f"an array of {len(value):,} items"
    return _json(value[:_BEFORE_MASK] if isinstance(value, str) else value)


def shorten(text: str, limit: int = _SCHEMA_TEXT) -> str:
    """Cut to a length and take away what does not print: control, bidirectional and invisible characters."""
    cut = text[: limit + 1]
    clean = "".join(character if character.isprintable() else " " for character in cut)
    return clean if len(cut) <= limit else clean[: limit - 1] + "…"


def place_text(path: str) -> str:
    """Keep both ends of a long path: they say the most."""
    half = _PATH_TEXT // 2
    kept = path if len(path) <= _PATH_TEXT else f"{path[:half]}…{path[1 - half :]}"
    return shorten(kept, _PATH_TEXT)


def agent_key_step(key: str) -> str:
    """Write one key of a path that the schema itself names."""
    return _key_step(shorten(key))


def record_key_step(key: str) -> str:
    """Write one key of a path as the payload has it."""
    return _key_step(key[:_BEFORE_MASK])


def _key_step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{_json(key)}]"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, ValueError, TypeError, RecursionError):
        return f"a {type(value).__name__} that JSON cannot carry"
