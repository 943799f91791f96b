"""How does a person read a JSON Schema? As a list of parameters: name, type, whether it must be given, and limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

MAX_ROWS: Final = 200
_MAX_DEPTH: Final = 6
_MAX_CHOICES: Final = 30
# Alternatives of alternatives multiply.
_MAX_TYPE_DEPTH: Final = 3
_MAX_ALTERNATIVES: Final = 6
_LIMITS: Final = (
    ("format", "format {}"),
    ("pattern", "matches {}"),
    ("exclusiveMinimum", "more than {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
)
_RANGES: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
)
_ALTERNATIVES: Final = ("anyOf", "oneOf")


class Parameter(Struct, frozen=True, kw_only=True):
    """One line of the list."""

    depth: int
    name: str
    type: str
    required: bool
    description: str
    limits: tuple[str, ...]
    choices: tuple[str, ...]
    default: str | None


def decoded(schema: bytes | None) -> Any:
    """The schema as values; None where it cannot be read."""
    try:
        return msgspec.json.decode(schema or b"null")
    except (msgspec.MsgspecError, RecursionError):
        return None


def parameters(schema: Any) -> list[Parameter]:
    """The parameters of an object's schema, those of its parts below it; at most a few hundred."""
    found: list[Parameter] = []
    for parameter in _members(schema, schema, 0, ()):
        found.append(parameter)
        if len(found) == MAX_ROWS:
            break
    return found


def resolved(node: Any, root: Any, seen: tuple[str, ...] = ()) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a node says, with a reference within the schema followed; and which references led here."""
    while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
        reference = node["$ref"]
        if reference in seen or not reference.startswith("#"):
            return {key: value for key, value in node.items() if key != "$ref"}, seen
        seen = (*seen, reference)
        target = _at(root, reference)
        node = {**(target if isinstance(target, Mapping) else {}), **{k: v for k, v in node.items() if k != "$ref"}}
    return (dict(node) if isinstance(node, Mapping) else {}), seen


def required_names(node: Mapping[str, Any]) -> set[str]:
    """The members that an object must have."""
    required = node.get("required")
    return {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()


def type_of(node: Any, root: Any, depth: int = 0) -> str:
    """The type of a value in words: `text`, `list of numbers`, `text or nothing`."""
    said, _ = resolved(node, root)
    if depth > _MAX_TYPE_DEPTH:
        return "any value"
    if "const" in said:
        return "fixed"
    if isinstance(said.get("enum"), list):
        return "choice"
    for key in _ALTERNATIVES:
        if isinstance(said.get(key), list) and said[key]:
            types = dict.fromkeys(type_of(choice, root, depth + 1) for choice in said[key][:_MAX_ALTERNATIVES])
            return " or ".join(types)
    kinds = said.get("type")
    named = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else [kinds]
    return " or ".join(_word(kind, said, root, depth) for kind in named)


def _word(kind: object, said: Mapping[str, Any], root: Any, depth: int) -> str:
    match kind:
        case "string":
            return "text"
        case "integer":
            return "whole number"
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case "array":
            items = type_of(said["items"], root, depth + 1) if isinstance(said.get("items"), Mapping) else "any value"
            return f"list of {items}"
        case "number" | "object":
            return str(kind)
        case _:
            return "object" if isinstance(said.get("properties"), Mapping) else "any value"


def _members(node: Any, root: Any, depth: int, seen: tuple[str, ...]) -> Iterator[Parameter]:
    said, seen = resolved(node, root, seen)
    properties = said.get("properties")
    if not isinstance(properties, Mapping) or depth > _MAX_DEPTH:
        return
    needed = required_names(said)
    for name, child in properties.items():
        inner, path = resolved(child, root, seen)
        yield Parameter(
            depth=depth,
            name=str(name),
            type=type_of(child, root),
            required=name in needed,
            description=str(inner.get("description") or ""),
            limits=tuple(_limits(inner)),
            choices=_choices(inner),
            default=_plain(inner["default"]) if "default" in inner else None,
        )
        yield from _members(inner, root, depth + 1, path)
        if isinstance(inner.get("items"), Mapping):
            yield from _members(inner["items"], root, depth + 1, path)


def _limits(said: Mapping[str, Any]) -> Iterator[str]:
    for low, high, unit in _RANGES:
        if low in said and high in said:
            yield f"{_plain(said[low])} to {_plain(said[high])}{unit}"
        elif low in said:
            yield f"{_plain(said[low])}{unit} or more"
        elif high in said:
            yield f"at most {_plain(said[high])}{unit}"
    yield from (text.format(_plain(said[key])) for key, text in _LIMITS if key in said)


def _choices(said: Mapping[str, Any]) -> tuple[str, ...]:
    values = [said["const"]] if "const" in said else said.get("enum")
    if not isinstance(values, list):
        return ()
    shown = tuple(_plain(value) for value in values[:_MAX_CHOICES])
    return (*shown, f"… {len(values) - _MAX_CHOICES} more") if len(values) > _MAX_CHOICES else shown


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _at(root: Any, reference: str) -> Any:
    """What a reference such as `#/$defs/Note` points at."""
    node = root
    for part in reference.removeprefix("#").strip("/").split("/") if reference.strip("#/") else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return node
