"""The order of the checks, and what each mode makes of them (seed 003, FR-A1 to FR-A12)."""

from typing import Any

import pytest

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs.check import PASS, block_message, check
from mcpproxy.outputs.findings import Findings
from mcpproxy.outputs.schema import CompiledSchema, NotCompiled, compile_schema

WARN = OutputValidation(mode="warn")
STRICT = OutputValidation(mode="strict")
OFF = OutputValidation(mode="off")
MODES = [OFF, WARN, STRICT]


def compiled(schema: dict[str, Any]) -> CompiledSchema:
    result = compile_schema(schema)
    assert isinstance(result, CompiledSchema)
    return result


COUNT = compiled({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]})
GOOD, BAD = b'{"count": 1}', b'{"count": "many"}'


@pytest.mark.parametrize(("settings", "action"), [(OFF, "pass"), (WARN, "warn"), (STRICT, "block")])
def test_each_mode_does_what_it_says(settings: OutputValidation, action: str) -> None:
    assert check(BAD, False, COUNT, settings).action == action
    assert check(GOOD, False, COUNT, settings) is PASS


@pytest.mark.parametrize("settings", MODES)
def test_a_tool_without_a_schema_is_left_alone(settings: OutputValidation) -> None:
    assert check(b"[" * 100_000, False, None, settings) is PASS


@pytest.mark.parametrize("settings", MODES)
def test_an_error_result_is_left_alone(settings: OutputValidation) -> None:
    assert check(BAD, True, COUNT, settings) is PASS


@pytest.mark.parametrize("settings", MODES)
def test_a_schema_that_does_not_compile_blocks_nothing(settings: OutputValidation) -> None:
    broken = compile_schema({"type": "strnig"})
    assert isinstance(broken, NotCompiled)
    assert check(BAD, False, broken, settings) is PASS
    assert check(None, False, broken, settings) is PASS


@pytest.mark.parametrize(
    ("mode", "posture", "action"),
    [
        ("off", "block", "pass"),
        ("warn", "allow", "pass"),
        ("warn", "block", "pass"),
        ("strict", "allow", "pass"),
        ("strict", "block", "block"),
    ],
)
def test_text_only_results_fail_only_where_the_operator_asked_for_it(mode: Any, posture: Any, action: str) -> None:
    settings = OutputValidation(mode=mode, missing_structured_content=posture)
    verdict = check(None, False, COUNT, settings)
    assert verdict.action == action
    assert check(None, False, None, settings) is PASS
    if action == "block":
        assert "expected structuredContent" in verdict.for_agent
        assert verdict.bytes == 0


@pytest.mark.parametrize(("settings", "action"), [(WARN, "warn"), (STRICT, "block")])
def test_the_byte_guard_comes_before_everything(settings: OutputValidation, action: str) -> None:
    small = OutputValidation(mode=settings.mode, max_bytes=1_000, max_depth=2)
    verdict = check(b"[" * 1_001, False, COUNT, small)
    assert (verdict.action, verdict.guard, verdict.bytes) == (action, "max_bytes", 1_001)
    assert verdict.for_agent == "$: expected at most 1,000 bytes"
    assert verdict.for_record == "$: expected at most 1,000 bytes, found 1,001 bytes"
    assert check(b'"' + b"x" * 998 + b'"', False, compiled({}), small) is PASS


@pytest.mark.parametrize(("settings", "action"), [(WARN, "warn"), (STRICT, "block")])
def test_the_depth_guard_comes_before_decoding(settings: OutputValidation, action: str) -> None:
    verdict = check(b"[" * 100_000, False, COUNT, settings)
    assert (verdict.action, verdict.guard) == (action, "max_depth")
    assert verdict.for_agent == "$: expected at most 64 levels of nesting"


def test_the_guards_bound_undeclared_payloads_only_where_the_operator_asked_for_it() -> None:
    guarded = OutputValidation(mode="strict", guard_undeclared=True, max_bytes=100, max_depth=2)
    for schema in (None, NotCompiled("broken")):
        assert check(b"x" * 101, False, schema, guarded).guard == "max_bytes"
        assert check(b"[[[]]]", False, schema, guarded).guard == "max_depth"
        assert check(b"not json: nothing to hold it against", False, schema, guarded) is PASS
        assert check(None, False, schema, guarded) is PASS


@pytest.mark.parametrize("raw", [b"1e400", rb'"\ud800"', b'"\xff"', b"", b"{", b"9" * 5_000])
@pytest.mark.parametrize(("settings", "action"), [(WARN, "warn"), (STRICT, "block")])
def test_what_does_not_decode_is_a_violation(raw: bytes, settings: OutputValidation, action: str) -> None:
    assert check(raw, False, compiled({}), settings).action == action


def test_a_repeated_key_is_a_violation_in_strict_mode_only() -> None:
    raw = b'{"count": 1, "count": 2}'
    verdict = check(raw, False, COUNT, STRICT)
    assert verdict.action == "block"
    assert verdict.for_agent == "$: expected every key once in an object"
    assert verdict.for_record.endswith("found a repeated key in $: count")
    assert check(raw, False, COUNT, WARN) is PASS


@pytest.mark.parametrize("raw", [b"[1]", b'"text"', b"7", b"true", b"null"])
def test_structured_content_of_any_type_is_held_against_the_schema(raw: bytes) -> None:
    assert check(raw, False, COUNT, STRICT).for_agent == "$: expected object"
    assert check(raw, False, compiled({"type": ["array", "string", "integer", "boolean", "null"]}), STRICT) is PASS


def test_a_blocked_result_says_what_the_contract_says() -> None:
    verdict = check(BAD, False, COUNT, STRICT)
    assert (
        block_message("shop:stock", verdict) == "Output validation failed for 'shop:stock': $.count: expected integer"
    )


def test_the_record_says_mode_violation_and_where() -> None:
    assert check(BAD, False, COUNT, WARN).details() == {
        "mode": "warn",
        "violation": '$.count: expected integer, found "many"',
        "schema_path": "/properties/count/type",
        "schema_hash": COUNT.schema_hash,
        "bytes": len(BAD),
    }
    deep = check(b"[" * 100, False, COUNT, STRICT).details()
    assert (deep["mode"], deep["guard"], "schema_path" in deep) == ("strict", "max_depth", False)


def test_the_record_is_masked_by_the_caller() -> None:
    verdict = check(BAD, False, COUNT, WARN, mask=lambda text: text.replace("many", "***"))
    assert verdict.for_record == '$.count: expected integer, found "***"'


def test_the_look_can_be_taken_elsewhere() -> None:
    seen: list[bytes] = []

    def look(structured: bytes, schema: CompiledSchema | None, settings: OutputValidation) -> Findings:
        seen.append(structured)
        return Findings()

    assert check(BAD, False, COUNT, STRICT, look=look) is PASS
    assert check(BAD, True, COUNT, STRICT, look=look) is PASS
    assert seen == [BAD]
