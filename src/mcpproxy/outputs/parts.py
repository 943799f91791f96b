"""Which part of a schema speaks about which part of a value?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs

from mcpproxy.outputs.engine import Dialect, validator
from mcpproxy.outputs.references import Node
from mcpproxy.outputs.wording import agent_key_step, record_key_step


class At(NamedTuple):
    """A place in the schema, and the part of the value it is about.

    `place` is the path as an agent may read it, `path` as the record has it.
    """

    pointer: tuple[str, ...]
    node: Any
    value: Any
    place: str = "$"
    path: str = "$"

    def within(self, *steps: str) -> At:
        """Go down in the schema, with the same part of the value."""
        node = self.node
        for step in steps:
            node = node[int(step)] if isinstance(node, list) else node[step]
        return self._replace(pointer=(*self.pointer, *steps), node=node)

    def down(self, step: int | tuple[int, str] | None, value: Any, names: frozenset[str]) -> At:
        """Go down in the value: to an item, to a member by number and key, or nowhere.

        A key that the schema does not name is told to an agent by its number only.
        """
        if step is None:
            return self
        if isinstance(step, int):
            place = path = f"[{step}]"
        else:
            number, key = step
            place = agent_key_step(key) if key in names else f"[key {number}]"
            path = record_key_step(key)
        return self._replace(value=value, place=self.place + place, path=self.path + path)


class Part(NamedTuple):
    """A part of a value and the schema it must fit. Built for every item, so it holds no text yet."""

    schema: At
    value: Any
    step: int | tuple[int, str] | None = None


def parts(at: At, dialect: Dialect) -> Iterator[Part]:
    """Yield every part of the value that a smaller schema speaks about."""
    node, value = at.node, at.value
    for index in range(len(node.get("allOf", ()))):
        yield Part(at.within("allOf", str(index)), value)
    if isinstance(value, dict):
        for keyword in ("dependentSchemas", "dependencies"):
            for key, needed in node.get(keyword, {}).items():
                if key in value and not isinstance(needed, list):
                    yield Part(at.within(keyword, key), value)
        yield from _members(at, dialect)
    elif isinstance(value, list):
        yield from _items(at, dialect)


def resolve_plainly(root: Any, at: At) -> At | None:
    """Follow a reference that is a plain pointer into the same document."""
    reference = at.node.get("$ref") if isinstance(at.node, dict) else None
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return None
    steps = [step.replace("~1", "/").replace("~0", "~") for step in unquote(reference).split("/")[1:]]
    return at._replace(pointer=(), node=root).within(*steps)


def named_keys(root: Any) -> frozenset[str]:
    """Collect every key that the schema names somewhere: those are fit for an agent to read."""
    names: set[str] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            names.update(name for name in _as_list(node.get("required")) if isinstance(name, str))
            for keyword in ("properties", "dependentRequired", "dependentSchemas", "dependencies"):
                if isinstance(by_key := node.get(keyword), dict):
                    names.update(by_key)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return frozenset(names)


def _members(at: At, dialect: Dialect) -> Iterator[Part]:
    node = at.node
    by_name = {key: at.within("properties", key) for key in node.get("properties", {}) if key in at.value}
    by_pattern = [
        (validator(dialect, {"pattern": pattern}), at.within("patternProperties", pattern))
        for pattern in node.get("patternProperties", {})
    ]
    others = at.within("additionalProperties") if "additionalProperties" in node else None
    for number, (key, value) in enumerate(at.value.items(), 1):
        schemas = [by_name[key]] if key in by_name else []
        schemas.extend(schema for matcher, schema in by_pattern if matcher.is_valid(key))
        if not schemas and others:
            schemas = [others]
        yield from (Part(schema, value, (number, key)) for schema in schemas)


def _items(at: At, dialect: Dialect) -> Iterator[Part]:
    first, rest = _item_keywords(at.node, dialect)
    positions = len(at.node[first]) if first else 0
    for index, value in enumerate(at.value[:positions]):
        yield Part(at.within(str(first), str(index)), value, index)
    if rest in at.node:
        schema = at.within(rest)
        for index in range(positions, len(at.value)):
            yield Part(schema, at.value[index], index)


def _item_keywords(node: Node, dialect: Dialect) -> tuple[str | None, str]:
    """Name the keyword for the first items and the one for all others: 2020-12 renamed both."""
    if dialect is jsonschema_rs.Draft202012Validator:
        return ("prefixItems" if "prefixItems" in node else None), "items"
    return ("items", "additionalItems") if isinstance(node.get("items"), list) else (None, "items")


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
