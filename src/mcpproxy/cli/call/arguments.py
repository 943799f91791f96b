"""What does the user want to send? JSON from an option, a file or stdin, and `key=value` pairs typed by the schema."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw

from mcpproxy.cli.errors import USAGE, Failure

_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_ORDER: Final = ("null", "boolean", "integer", "number", "array", "object", "string")
"""Where a schema allows several types, the first that the text can be."""
_HELP: Final = "See: mcpproxy call tool-read --help"


class _NotThis(Exception):
    """The text is not of this type."""


def given_json(*options: tuple[str, str | None]) -> bytes | None:
    """The JSON of whichever option was given, byte for byte; None where none was."""
    found = [(flag, text) for flag, text in options if text is not None]
    if not found:
        return None
    if len(found) > 1:
        raise Failure(USAGE, f"give {' or '.join(flag for flag, _ in found)}, not both.", _HELP)
    flag, text = found[0]
    data = _read(flag, text)
    try:
        value = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise Failure(USAGE, f"{flag} is not valid JSON: {error}.", _HELP) from None
    if not isinstance(value, dict):
        raise Failure(USAGE, f'{flag} must be a JSON object, such as \'{{"query": "milk"}}\'.', _HELP)
    return data or b"{}"


def _read(flag: str, text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read().strip()
    if not text.startswith("@"):
        return text.strip().encode(errors="surrogateescape")
    try:
        return Path(text[1:]).expanduser().read_bytes().strip()
    except OSError as error:
        raise Failure(USAGE, f"{flag}: {text[1:]} cannot be read: {error.strerror}.", _HELP) from None


def is_pair(word: str) -> bool:
    """Whether a word is `key=value`."""
    return "=" in word and not word.startswith("=")


def merged(data: bytes | None, pairs: Sequence[str], schema: Mapping[str, Any]) -> bytes:
    """The arguments to send: the JSON as it came, or with the pairs laid over it."""
    if not pairs:
        return data or b"{}"
    arguments: dict[str, Any] = msgspec.json.decode(data or b"{}", type=dict[str, Raw])
    return msgspec.json.encode(arguments | typed(pairs, schema))


def typed(pairs: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The pairs as the tool's schema wants them; a key that is given again makes a list."""
    texts: dict[str, list[str]] = {}
    for pair in pairs:
        key, _, text = pair.partition("=")
        texts.setdefault(key, []).append(text)
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return {key: _value(key, found, _resolved(known.get(key), schema), schema) for key, found in texts.items()}


def _value(key: str, texts: list[str], schema: Mapping[str, Any] | None, root: Mapping[str, Any]) -> Any:
    if schema is None:
        values = [_guessed(text) for text in texts]
        return values if len(values) > 1 else values[0]
    kinds = _types(schema, root)
    if len(texts) > 1 or ("array" in kinds and "string" not in kinds and not texts[0].startswith("[")):
        if "array" not in kinds:
            raise Failure(USAGE, f"{key} is given {len(texts)} times, and the tool takes one value for it.")
        item = _resolved(schema.get("items"), root) or {}
        return [_single(key, text, item, root) for text in texts]
    return _single(key, texts[0], schema, root)


def _single(key: str, text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    for choice in schema.get("enum") or ():
        if text == choice or (not isinstance(choice, str) and text == json.dumps(choice)):
            return choice
    kinds = _types(schema, root)
    for kind in _ORDER:
        if kind in kinds:
            try:
                return _READERS[kind](text)
            except _NotThis:
                continue
    if not kinds:
        return _guessed(text)
    raise Failure(
        USAGE, f"{key}: {text[:60]!r} is not {' or '.join(_NOUNS[kind] for kind in _ORDER if kind in kinds)}."
    )


def _types(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """The types that a schema names, also as choices; nothing where it names none."""
    said = schema.get("type")
    found = {said} if isinstance(said, str) else set(said) if isinstance(said, list) else set()
    for word in ("anyOf", "oneOf"):
        for choice in schema.get(word) or ():
            inner = _resolved(choice, root)
            if inner is not None and depth < 4:
                found |= _types(inner, root, depth + 1)
    if not found and "enum" in schema:
        found = {"string"} if all(isinstance(choice, str) for choice in schema["enum"]) else set()
    return frozenset(found) & frozenset(_ORDER)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema behind references within the same document."""
    for _ in range(8):
        if not isinstance(schema, Mapping):
            return None
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for part in reference[2:].split("/"):
            schema = schema.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(schema, Mapping) else None
    return None


def _guessed(text: str) -> Any:
    """What a text most likely is where nothing says: JSON if it is that, else text."""
    try:
        json.loads(text)
        return Raw(text.encode())
    except (ValueError, RecursionError):
        return text


def _null(text: str) -> None:
    if text != "null":
        raise _NotThis


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _NotThis
    return text.lower() == "true"


def _integer(text: str) -> Raw:
    return _number_like(_WHOLE, text)


def _number(text: str) -> Raw:
    return _number_like(_NUMBER, text)


def _number_like(form: re.Pattern[str], text: str) -> Raw:
    if not form.fullmatch(text):
        raise _NotThis
    return Raw(text.encode())  # 0.10 stays 0.10


def _array(text: str) -> Raw:
    return _json(text, list)


def _object(text: str) -> Raw:
    return _json(text, dict)


def _json(text: str, kind: type) -> Raw:
    try:
        fits = isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise _NotThis
    return Raw(text.encode())


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "null": _null,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "array": _array,
    "object": _object,
    "string": str,
}
_NOUNS: Final = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a JSON list",
    "object": "a JSON object",
    "string": "text",
}
