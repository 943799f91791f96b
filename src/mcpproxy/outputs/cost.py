"""What may checking against this schema cost, at worst? Answered before it is compiled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jsonschema_rs

from mcpproxy.outputs.engine import PATTERN_BYTES, validator
from mcpproxy.outputs.references import HOLDS_MAP, HOLDS_ONE_OR_LIST, METASCHEMA, Document, Node, held

MAX_VISITS = 10_000
# For schemas that contain themselves: beyond this, what a check costs no longer follows from its size.
MAX_RECURSIVE_VISITS = 500
# Compiled, all patterns together. One that fills this cap alone took 44 µs per character at worst.
MAX_PATTERN_BYTES = 1 << 21
_SMALLEST_PATTERN = 512

# Worst cases measured, in nanoseconds per byte of payload: a visited schema costs 10 ns per value and a
# value is at least 2 bytes; an option of a mixed enum likewise; a pattern costs by its compiled size.
_VISIT_NS = 5.0
_PATTERN_NS = 0.5
_METASCHEMA_VISITS = 200

_IN_PLACE = frozenset({"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"})

_UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
# In a schema that contains itself, these made the validator take seconds for 50 bytes: no number is safe.
_TOUCHY = _UNEVALUATED | {"$dynamicRef", "$recursiveRef"}


class TooCostlyError(Exception):
    """The schema asks for more work than a check may cost. Its text says which limit it breaks."""


def worst_case(document: Document) -> float:
    """Return nanoseconds per byte of payload (infinite: unknown); raise `TooCostlyError`, `UnresolvedError`.

    Follows every path through the schema as the validator does: a schema reached twice counts twice,
    and a path ends where it comes back to a schema that is still open on it.
    """
    visits = options = pattern_bytes = 0
    recursive = touchy = False
    open_: set[int] = set()
    # Entries are schemas to visit, or the number of one to close when all below it is done.
    stack: list[tuple[Any, bool, bool] | int] = [(document.root, True, False)]
    while stack:
        entry = stack.pop()
        if isinstance(entry, int):
            open_.discard(entry)
            continue
        node, referenced, filtering = entry
        visits += _METASCHEMA_VISITS if node is METASCHEMA else 1
        if referenced and id(node) in open_:
            recursive = True
        elif isinstance(node, dict):
            if referenced:
                open_.add(id(node))
                stack.append(id(node))
            touchy = touchy or not _TOUCHY.isdisjoint(node)
            options += _options(node)
            pattern_bytes += _pattern_bytes(node)
            stack.extend(_next(document, node, filtering))
        most = MAX_RECURSIVE_VISITS if recursive and touchy else MAX_VISITS
        if visits > most or options > MAX_VISITS:
            raise TooCostlyError(f"one value may lead through more than {most:,} of its parts")
        if pattern_bytes > MAX_PATTERN_BYTES:
            raise TooCostlyError("its patterns are too large together")
    if recursive and (touchy or visits > MAX_RECURSIVE_VISITS):
        return math.inf
    return _VISIT_NS * (visits + options) + _PATTERN_NS * pattern_bytes


def _next(document: Document, node: Node, filtering: bool) -> Iterator[tuple[Any, bool, bool]]:
    """Yield what to visit next. `unevaluated…` walks all that applies in place once more, as a filter."""
    walks = [filtering]
    if not filtering and not _UNEVALUATED.isdisjoint(node):
        walks.append(True)
    for target in document.targets(node):
        yield from ((target, True, walk) for walk in walks)
    for keyword in node:
        if keyword in _IN_PLACE:
            yield from ((child, False, walk) for child in held(node, keyword) for walk in walks)
        elif not filtering and (keyword in HOLDS_ONE_OR_LIST or keyword in HOLDS_MAP):
            yield from ((child, False, False) for child in held(node, keyword))


def _options(node: Node) -> int:
    """Count what must be compared one by one: options of one scalar kind are looked up instead."""
    options = node.get("enum")
    if not isinstance(options, list):
        return 0
    kinds = {type(option) for option in options}
    return 0 if kinds <= {str} or kinds <= {int, float} else len(options)


def _pattern_bytes(node: Node) -> int:
    patterns = [node["pattern"]] if isinstance(node.get("pattern"), str) else []
    if isinstance(by_pattern := node.get("patternProperties"), dict):
        patterns.extend(by_pattern)
    return sum(map(_compiled_bytes, patterns))


@lru_cache(maxsize=256)
def _compiled_bytes(pattern: str) -> int:
    """Find the power of two that bounds a pattern's compiled size. What does not compile is said later."""
    size = _SMALLEST_PATTERN
    while size < PATTERN_BYTES:
        try:
            validator(jsonschema_rs.Draft202012Validator, {"pattern": pattern}, pattern_bytes=size)
        except jsonschema_rs.ValidationError:
            size *= 2
        else:
            break
    return size
