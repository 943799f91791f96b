"""Where does a value break its schema? Found by asking the validator about ever smaller parts of it.

The validator's own list of errors copies the value into every one of them: a 1 MB payload against
200 required keys took 66 s and 8 GB. Asking "is this part valid?" costs neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time
from typing import Any
from urllib.parse import quote

import jsonschema_rs

from mcpproxy.outputs.engine import Dialect, validator
from mcpproxy.outputs.findings import SHOWN, Findings, one
from mcpproxy.outputs.parts import At, named_keys, parts, resolve_plainly
from mcpproxy.outputs.references import Document, Node
from mcpproxy.outputs.wording import Violation, expected, found, missing_key, place_text, shorten

MAX_COUNTED = 100
_SECONDS = 0.2
_ADDRESS = "mcpproxy:schema"
_REFERENCE_HOPS = 8

# What one keyword decides about the value itself. `type` first: where it fails, the others say nothing.
_ALONE = (
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType", "minItems", "maxItems",
    "uniqueItems", "minProperties", "maxProperties",
)  # fmt: skip
# What can only be named, not narrowed down: it weighs other keywords, or lies behind another address.
_ONLY_NAMED = ("unevaluatedProperties", "unevaluatedItems", "$ref", "$dynamicRef", "$recursiveRef")
# Where `false` stands, it refuses what is not listed before it.
_REFUSED_BY = {"additionalProperties": "no key", "additionalItems": "no item", "items": "no item"}
# Up to draft 7 a reference hides everything beside it.
_REFERENCE_HIDES = (jsonschema_rs.Draft4Validator, jsonschema_rs.Draft6Validator, jsonschema_rs.Draft7Validator)


class _OutOfTimeError(Exception):
    """The search took its time: what was found until here is said."""


def explain(document: Document, dialect: Dialect, value: Any) -> Findings:
    """Say how a value known to be invalid breaks its schema. Bounded in time; always finds something."""
    shown: list[Violation] = []
    total = 0
    complete = False
    try:
        for violation in _Search(document, dialect).walk(At((), document.root, value)):
            total += 1
            if total <= SHOWN:
                shown.append(violation)
            if total == MAX_COUNTED:
                break
        else:
            complete = True
    except (_OutOfTimeError, RecursionError):
        pass
    return Findings(shown=tuple(shown), total=total, complete=complete) if shown else one(expected(""), found(value))


class _Search:
    def __init__(self, document: Document, dialect: Dialect) -> None:
        self._document = document
        self._dialect = dialect
        self._registry = jsonschema_rs.Registry([(_ADDRESS, document.root)])
        self._validators: dict[tuple[str, ...], jsonschema_rs.Validator | None] = {}
        self._names = named_keys(document.root)
        self._asked = 0
        self._until = thread_time() + _SECONDS

    def walk(self, at: At) -> Iterator[Violation]:
        """Yield the violations of a part that is known to be invalid."""
        if not isinstance(at.node, dict):
            yield self._violation(at, _REFUSED_BY.get(at.pointer[-1] if at.pointer else "", "false"))
            return
        silent = True
        for violation in self._narrow(at):
            silent = False
            yield violation
        if silent:
            yield self._violation(at, next((keyword for keyword in _ONLY_NAMED if keyword in at.node), ""))

    def _narrow(self, at: At) -> Iterator[Violation]:
        if target := self._referenced(at):
            yield from self._if_broken(target)
        if "$ref" in at.node and self._dialect in _REFERENCE_HIDES:
            return
        for keyword in _ALONE:
            if keyword in at.node and not self._fits_alone(at.node, keyword, at.value):
                yield self._violation(at, keyword)
                if keyword == "type":
                    return
        yield from self._combined(at)
        for part in parts(at, self._dialect):
            if not self._fits(part.schema, part.value):
                yield from self.walk(part.schema.down(part.step, part.value, self._names))

    def _if_broken(self, at: At) -> Iterator[Violation]:
        if not self._fits(at, at.value):
            yield from self.walk(at)

    def _fits(self, schema: At, value: Any) -> bool:
        """Ask the validator about one part. What it cannot answer counts as fitting: the parent is named."""
        self._asked += 1
        if self._asked % 32 == 0 and thread_time() > self._until:
            raise _OutOfTimeError
        if isinstance(schema.node, bool):
            return schema.node
        if schema.pointer not in self._validators:
            self._validators[schema.pointer] = self._compile(schema.pointer)
        part = self._validators[schema.pointer]
        return part is None or part.is_valid(value)

    def _compile(self, pointer: tuple[str, ...]) -> jsonschema_rs.Validator | None:
        try:
            return validator(self._dialect, {"$ref": f"{_ADDRESS}#{_fragment(pointer)}"}, self._registry)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
            return None

    def _fits_alone(self, node: Node, keyword: str, value: Any) -> bool:
        alone = {keyword: node[keyword]}
        # Draft 4 has a limit and, beside it, whether the limit itself is out.
        if isinstance(exclusive := node.get(f"exclusive{keyword.capitalize()}"), bool):
            alone[f"exclusive{keyword.capitalize()}"] = exclusive
        elif keyword.startswith("exclusive") and isinstance(node[keyword], bool):
            return True
        return validator(self._dialect, alone).is_valid(value)

    def _referenced(self, at: At) -> At | None:
        # An inner resource changes what `#` means: then references are named, not followed.
        return None if self._document.has_inner_resources else resolve_plainly(self._document.root, at)

    def _combined(self, at: At) -> Iterator[Violation]:
        """Judge the keywords that weigh several schemas, or several values, against each other."""
        for keyword in ("anyOf", "oneOf"):
            if keyword in at.node:
                yield from self._alternatives(at, keyword)
        if "not" in at.node and self._fits(at.within("not"), at.value):
            yield self._violation(at, "not")
        if "if" in at.node:
            branch = "then" if self._fits(at.within("if"), at.value) else "else"
            if branch in at.node:
                yield from self._if_broken(at.within(branch))
        if isinstance(at.value, list) and "contains" in at.node:
            yield from self._contained(at)
        if isinstance(at.value, dict):
            yield from self._keys(at, at.value)

    def _alternatives(self, at: At, keyword: str) -> Iterator[Violation]:
        branches = [at.within(keyword, str(index)) for index in range(len(at.node[keyword]))]
        fitting = sum(self._fits(branch, at.value) for branch in branches)
        if fitting == 1 or (fitting and keyword == "anyOf"):
            return
        likely = [branch for branch in branches if self._has_type_of(branch)]
        if fitting or len(likely) > 1:
            yield self._violation(at, keyword)
        elif likely:
            # One branch is of the value's type: what it asks for is what was meant.
            yield from self.walk(likely[0])
        else:
            types = [name for branch in branches for name in self._types(branch)]
            yield self._violation(at, keyword, expected("type", list(dict.fromkeys(types))))

    def _has_type_of(self, at: At) -> bool:
        if isinstance(at.node, bool):
            return at.node
        types = self._types(at)
        return not types or validator(self._dialect, {"type": types}).is_valid(at.value)

    def _types(self, at: At) -> list[str]:
        for _ in range(_REFERENCE_HOPS):
            if isinstance(at.node, dict) and "type" in at.node:
                return at.node["type"] if isinstance(at.node["type"], list) else [at.node["type"]]
            if (target := self._referenced(at)) is None:
                break
            at = target
        return []

    def _contained(self, at: At) -> Iterator[Violation]:
        schema = at.within("contains")
        fitting = sum(self._fits(schema, item) for item in at.value)
        if not at.node.get("minContains", 1) <= fitting <= at.node.get("maxContains", fitting):
            yield self._violation(at, "contains")

    def _keys(self, at: At, value: dict[str, Any]) -> Iterator[Violation]:
        """Judge which keys are there: those required, those that others require, and their names."""
        for name in at.node.get("required", ()):
            if name not in value:
                yield self._violation(at, "required", missing_key(name))
        for keyword in ("dependentRequired", "dependencies"):
            for key, needed in at.node.get(keyword, {}).items():
                if key in value and isinstance(needed, list):
                    missing = [name for name in needed if name not in value]
                    yield from (self._violation(at, keyword, missing_key(name, key)) for name in missing)
        if "propertyNames" in at.node:
            schema = at.within("propertyNames")
            for number, key in enumerate(value, 1):
                if not self._fits(schema, key):
                    yield self._violation(at.down((number, key), value[key], self._names), "propertyNames")

    def _violation(self, at: At, keyword: str, text: str | None = None) -> Violation:
        node = at.node if isinstance(at.node, dict) else {}
        steps = (*at.pointer, keyword) if keyword in node else at.pointer
        exclusive = f"exclusive{keyword.capitalize()}"
        asked = exclusive if node.get(exclusive) is True else keyword
        return Violation(
            place=place_text(at.place),
            expected=text or expected(asked, node.get(keyword)),
            path=at.path,
            found=found(at.value),
            schema_path=shorten("".join(f"/{step}" for step in steps), 200),
        )


def _fragment(pointer: tuple[str, ...]) -> str:
    return "".join(f"/{quote(step.replace('~', '~0').replace('/', '~1'), safe='~')}" for step in pointer)
