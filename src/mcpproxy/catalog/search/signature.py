"""How is a tool called, in one line? A compact signature of its input schema, and the first sentence about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mcpproxy.catalog.search.document import resolve

MAX_PARAMETERS = 24
MAX_CHOICES = 6
MAX_DEPTH = 3
MAX_SENTENCE = 200

_NAMES = {"string": "str", "integer": "int", "number": "num", "boolean": "bool", "null": "null", "object": "object"}
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$.-]{0,63}", re.ASCII)
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)\s+(?=[A-Z0-9\"'`(\[])|(?<=[\u3002\uff01\uff1f])|\n\s*\n"
)


def signature_of(schema: object) -> str:
    """Parameters with their types, the required ones first: `(repo: str, title: str, labels?: [str])`."""
    if not isinstance(schema, Mapping):
        return "()"
    return f"({', '.join(_members(schema, schema, 0))})"


def first_sentence(text: str) -> str:
    """The first sentence of a description, on one line; a very long one ends in `…`."""
    sentence = " ".join(_SENTENCE_END.split(text.strip(), maxsplit=1)[0].split())
    if len(sentence) <= MAX_SENTENCE:
        return sentence
    return sentence[: MAX_SENTENCE - 1].rsplit(" ", 1)[0] + "…"


def _members(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> list[str]:
    properties = node.get("properties")
    if not isinstance(properties, Mapping):
        return []
    required = node.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    ordered = sorted(properties.items(), key=lambda item: item[0] not in needed)
    shown = [
        f"{_name(name)}{'' if name in needed else '?'}: {_type(child, root, depth + 1)}"
        for name, child in ordered[:MAX_PARAMETERS]
    ]
    if len(ordered) > MAX_PARAMETERS:
        shown.append(f"… {len(ordered) - MAX_PARAMETERS} more")
    return shown


def _name(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name[:64])


def _type(node: object, root: Mapping[str, Any], depth: int) -> str:
    if not isinstance(node, Mapping) or depth > MAX_DEPTH:
        return "any" if not isinstance(node, Mapping) else _short(node.get("type"))
    if isinstance(node.get("$ref"), str):
        return _type(resolve(node["$ref"], root), root, depth + 1)
    if "const" in node:
        return _literal(node["const"])
    if isinstance(node.get("enum"), list):
        return _union([_literal(choice) for choice in node["enum"]])
    for key in ("anyOf", "oneOf"):
        if isinstance(node.get(key), list):
            return _union([_type(choice, root, depth + 1) for choice in node[key][: MAX_CHOICES * 2]])
    if isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
        return _type(node["allOf"][0], root, depth + 1)
    kind = node.get("type")
    if kind == "array":
        return f"[{_type(node.get('items'), root, depth + 1)}]"
    if kind in (None, "object") and isinstance(node.get("properties"), Mapping):
        return "{" + ", ".join(_members(node, root, depth)) + "}"
    return _short(kind)


def _short(kind: object) -> str:
    if isinstance(kind, list):
        return _union([_short(one) for one in kind])
    if kind == "array":
        return "[any]"
    return _NAMES.get(kind, "any") if isinstance(kind, str) else "any"


def _union(kinds: list[str]) -> str:
    kinds = list(dict.fromkeys(kinds))
    shown = kinds[:MAX_CHOICES]
    if len(kinds) > MAX_CHOICES:
        shown.append(f"… {len(kinds) - MAX_CHOICES} more")
    return "|".join(shown)


def _literal(value: object) -> str:
    if isinstance(value, str | int | float | bool) or value is None:
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= 40 else text[:39] + "…"
    return "any"
