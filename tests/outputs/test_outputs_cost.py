"""What a schema may cost is known before it is compiled; bombs are told from schemas that are merely recursive."""

import math
from typing import Any

import pytest

from mcpproxy.outputs.apart import is_heavy
from mcpproxy.outputs.schema import CompiledSchema, NotCompiled, compile_schema


def laughs(keyword: str, levels: int, wrap: str | None = None) -> dict[str, Any]:
    """Each level names the next one twice: 2^levels paths in a few hundred bytes."""

    def twice(level: int) -> dict[str, Any]:
        reference: dict[str, Any] = {"$ref": f"#/$defs/l{level + 1}"}
        return {keyword: [{wrap: reference} if wrap else reference] * 2}

    defs = {f"l{level}": twice(level) for level in range(levels)}
    return {"$defs": {**defs, f"l{levels}": {"type": "integer"}}, "$ref": "#/$defs/l0"}


def ring(size: int) -> dict[str, Any]:
    """Every schema leads to the next and the next but one, round and round: no level, no end."""
    references = [[{"$ref": f"#/$defs/d{(i + step) % size}"} for step in (1, 2)] for i in range(size)]
    return {"$defs": {f"d{i}": {"allOf": pair} for i, pair in enumerate(references)}, "$ref": "#/$defs/d0"}


def clique(size: int) -> dict[str, Any]:
    everyone = [{"items": {"$ref": f"#/$defs/d{i}"}} for i in range(size)]
    return {"$defs": {f"d{i}": {"allOf": everyone} for i in range(size)}, "$ref": "#/$defs/d0"}


def by_address(schema: dict[str, Any], address: str) -> dict[str, Any]:
    """The same schema, its parts referenced by addresses of their own."""
    defs = {}
    for name, part in schema["$defs"].items():
        moved = {
            key: [{"$ref": f"{address}{entry['$ref'].rpartition('/')[2]}"} for entry in value]
            if isinstance(value, list)
            else value
            for key, value in part.items()
        }
        defs[name] = {"$id": f"{address}{name}", **moved}
    return {"$defs": defs, "$ref": f"{address}l0"}


def unevaluated_chain(size: int) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}], "unevaluatedProperties": False} for i in range(size)
    }
    return {"$defs": {**defs, f"d{size}": {}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    "bomb",
    [
        laughs("allOf", 14),
        laughs("anyOf", 31),
        laughs("oneOf", 31),
        laughs("allOf", 31, "items"),
        laughs("allOf", 31, "not"),
        by_address(laughs("allOf", 31), "https://example.com/"),
        by_address(laughs("allOf", 31), "urn:example:"),
        # An address that looks like a dialect's own schema is still the schema that carries it.
        by_address(laughs("allOf", 31), "https://json-schema.org/"),
        ring(30),
        clique(10),
        unevaluated_chain(300),
        {"$dynamicAnchor": "n", "allOf": [{"items": {"$dynamicRef": "#n"}, "not": {"$dynamicRef": "#n"}}] * 300},
    ],
    ids=lambda bomb: str(bomb)[:40],
)
def test_a_bomb_is_not_compiled(bomb: dict[str, Any]) -> None:
    result = compile_schema(bomb)
    assert isinstance(result, NotCompiled)
    assert "too costly" in result.reason


def test_options_of_mixed_kinds_are_dear_and_options_of_one_kind_are_not() -> None:
    mixed, words = (
        compile_schema({"enum": ["a", *range(1_000)]}),
        compile_schema({"enum": [str(i) for i in range(1_000)]}),
    )
    assert isinstance(mixed, CompiledSchema)
    assert isinstance(words, CompiledSchema)
    assert mixed.worst_ns_per_byte > 1_000 > words.worst_ns_per_byte


def test_large_patterns_are_bounded_together() -> None:
    result = compile_schema({"allOf": [{"pattern": f"^.{{0,900}}{i}"} for i in range(20)]})
    assert isinstance(result, NotCompiled)
    assert "patterns" in result.reason


TREE = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"}}}
JSON_VALUE = {
    "$defs": {
        "value": {
            "anyOf": [
                {"type": "array", "items": {"$ref": "#/$defs/value"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}},
                {"type": ["string", "number", "boolean", "null"]},
            ]
        }
    },
    "$ref": "#/$defs/value",
}


@pytest.mark.parametrize("schema", [TREE, JSON_VALUE, {"$ref": "#"}, {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}])
def test_a_schema_that_contains_itself_compiles_and_stays_light(schema: dict[str, Any]) -> None:
    result = compile_schema(schema)
    assert isinstance(result, CompiledSchema)
    assert result.worst_ns_per_byte < 100
    assert not is_heavy(result, b"1" * 10_000)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"$ref": "#"}, "unevaluatedProperties": False},
        {"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}},
    ],
)
def test_what_cannot_be_reckoned_is_heavy_at_any_size(schema: dict[str, Any]) -> None:
    result = compile_schema(schema)
    assert isinstance(result, CompiledSchema)
    assert result.worst_ns_per_byte == math.inf
    assert is_heavy(result, b"1" * 10)


def test_a_plain_pattern_keeps_a_payload_light_and_a_large_one_does_not() -> None:
    light, heavy = compile_schema({"pattern": "^[a-z]+$"}), compile_schema({"pattern": "(?:[ab]{1,50}){1,50}c"})
    assert isinstance(light, CompiledSchema)
    assert isinstance(heavy, CompiledSchema)
    assert not is_heavy(light, b"1" * 10_000)
    assert is_heavy(heavy, b"1" * 10_000)


@pytest.mark.parametrize(
    ("payload", "heavy"),
    [
        (b'{"text":"%s"}' % (b"a, [b] {c} " * 50_000), False),
        (b'{"text":"%s"}' % (rb"a \\\"quoted\", one " * 20_000), False),
        (b'["' + b'","' * 10_000 + b'"]' + b" " * 65_536, True),
        (b"[" + b"1," * 50_000 + b"1]", True),
        (b'{"text":"%s"}' % (b"a" * 1_048_576), True),
        (b'{"text":"%s"}' % (b"a" * 60_000), False),
    ],
    ids=["prose", "quoted prose", "many texts", "many numbers", "too large in any case", "small"],
)
def test_a_long_text_is_light_and_many_values_are_not(payload: bytes, heavy: bool) -> None:
    schema = compile_schema({"type": "object"})
    assert isinstance(schema, CompiledSchema)
    assert is_heavy(schema, payload) is heavy
