"""Schemas and payloads written to hurt: each ends, in bounded time and memory.

Every case runs in a process of its own, so that a regression fails instead of hanging the tests. The time
limit there is generous; it is a net, not a measurement.
"""

import json
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs.apart import Apart
from mcpproxy.outputs.check import check
from mcpproxy.outputs.schema import NotCompiled, compile_schema

SECONDS = 60
MEMORY = 3 << 30
MEGABYTE = 1_000_000


def ab(length: int) -> bytes:
    return json.dumps("".join(random.Random(7).choices("ab", k=length))).encode()


def flat(element: bytes, size: int) -> bytes:
    return b"[" + b",".join([element] * (size // (len(element) + 1))) + b"]"


def doubling(keyword: str) -> dict[str, Any]:
    defs = {f"l{i}": {keyword: [{"$ref": f"#/$defs/l{i + 1}"}] * 2} for i in range(31)}
    return {"$defs": {**defs, "l31": {"type": "integer"}}, "$ref": "#/$defs/l0"}


RING = {
    "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{(i + k) % 30}"} for k in (1, 2)]} for i in range(30)},
    "$ref": "#/$defs/d0",
}
# Of a kind found by fuzzing: a few hundred bytes of payload keep the validator busy for seconds.
UNEVALUATED = {
    "unevaluatedProperties": {"$ref": "#/$defs/a"},
    "$defs": {
        "a": {
            "anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}, {"$ref": "#"}],
            "unevaluatedProperties": {"$ref": "#/$defs/a"},
            "dependentSchemas": {"a": {"$ref": "#/$defs/b"}},
        },
        "b": {
            "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#"}],
            "unevaluatedProperties": {"$ref": "#/$defs/b"},
            "if": {"$ref": "#/$defs/a"},
            "then": {"$ref": "#"},
        },
    },
}

Case = Callable[[], tuple[Any, bytes]]
# Each gives a schema and a payload.
CASES: dict[str, Case] = {
    "regex_nested_plus": lambda: ({"pattern": "^(a+)+$"}, b'"' + b"a" * 50_000 + b'!"'),
    "regex_alternation": lambda: ({"pattern": "^(a|a)*$"}, b'"' + b"a" * MEGABYTE + b'!"'),
    "regex_many_states": lambda: ({"pattern": "(?:[ab]{1,50}){1,50}c"}, ab(MEGABYTE)),
    "regex_on_keys": lambda: ({"patternProperties": {"(?:[ab]{1,50}){1,50}c": False}}, b"{" + ab(MEGABYTE) + b":1}"),
    "regex_backreference": lambda: ({"pattern": r"(a*)*\1b"}, b'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"'),
    "regexes_in_great_number": lambda: ({"allOf": [{"pattern": f"^.{{0,900}}{i}"} for i in range(400)]}, ab(10_000)),
    "reference_to_itself": lambda: ({"$ref": "#"}, b"1"),
    "references_in_a_circle": lambda: (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        b"1",
    ),
    "references_in_a_ring": lambda: (RING, b"1"),
    "doubling_allof": lambda: (doubling("allOf"), b"1"),
    "doubling_anyof": lambda: (doubling("anyOf"), b'"x"'),
    "doubling_oneof": lambda: (doubling("oneOf"), b"1"),
    "unevaluated_in_circles": lambda: (UNEVALUATED, b'{"a":' * 60 + b"1" + b"}" * 60),
    "enum_of_100000": lambda: ({"enum": list(range(100_000))}, b"1"),
    "enum_of_mixed_kinds": lambda: (
        {"items": {"enum": [{"a": i} for i in range(600)]}},
        flat(b'{"a":599}', 5 * MEGABYTE),
    ),
    "properties_200000": lambda: ({"properties": {f"p{i}": {} for i in range(200_000)}}, b"{}"),
    "work_times_elements": lambda: ({"items": {"allOf": [{"type": "integer"}] * 900}}, flat(b"1", 5 * MEGABYTE)),
    "errors_times_size": lambda: (
        {"required": [f"p{i}" for i in range(900)]},
        b'{"x":' + flat(b"1", 5 * MEGABYTE) + b"}",
    ),
    "errors_in_all_branches": lambda: (
        {"anyOf": [{"required": [f"p{i}"]} for i in range(600)]},
        b'{"x":' + flat(b"{}", 5 * MEGABYTE) + b"}",
    ),
    "errors_in_every_element": lambda: ({"items": {"type": "string"}}, flat(b"1", 5 * MEGABYTE)),
    "depth_100000": lambda: ({}, b"[" * 100_000 + b"]" * 100_000),
    "depth_2500000": lambda: ({}, b"[" * 2_500_000 + b"]" * 2_500_000),
    "towers": lambda: ({}, flat(b"[" * 60 + b"]" * 60, 2 * MEGABYTE)),
    "brackets_in_strings": lambda: ({}, flat(b'"[{"', 5 * MEGABYTE)),
    "ten_megabytes": lambda: ({"type": "array"}, flat(b"1", 10 * MEGABYTE)),
    "many_small_objects": lambda: ({"type": "array"}, flat(b"{}", 5 * MEGABYTE)),
    "repeated_keys": lambda: ({}, b"{" + b",".join([b'"a":1'] * 800_000) + b"}"),
    "keys_in_great_number": lambda: (
        {"additionalProperties": False},
        b"{" + b",".join(b'"%d":1' % i for i in range(400_000)) + b"}",
    ),
    "one_long_string": lambda: ({"maxLength": 1}, b'"' + b"x" * 5 * MEGABYTE + b'"'),
    "one_long_number": lambda: ({}, b"9" * 5 * MEGABYTE),
    "backslashes": lambda: ({}, b'"' + b"\\\\" * 2 * MEGABYTE + b'"'),
}  # fmt: skip

NOT_COMPILED = {
    "regex_backreference", "regexes_in_great_number", "references_in_a_ring", "doubling_allof", "doubling_anyof",
    "doubling_oneof", "enum_of_100000", "properties_200000",
}  # fmt: skip
CONFORMING = {
    "reference_to_itself", "references_in_a_circle", "towers", "brackets_in_strings", "many_small_objects",
    "backslashes",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_ends(case: str) -> None:
    run = subprocess.run([sys.executable, __file__, case], capture_output=True, timeout=SECONDS, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2_000:]
    outcome = json.loads(run.stdout)
    if case in NOT_COMPILED:
        assert outcome["not_compiled"]
    elif case in CONFORMING:
        assert outcome["action"] == "pass"
    else:
        assert outcome["action"] in ("pass", "block")
        assert outcome["action"] == "block" or case == "unevaluated_in_circles"


def main(case: str) -> None:
    """Run one case the way the pipeline runs it, within bounds that the kernel enforces."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    schema, payload = CASES[case]()
    compiled = compile_schema(schema if isinstance(schema, bool) else json.dumps(schema).encode())
    if isinstance(compiled, NotCompiled):
        print(json.dumps({"not_compiled": compiled.reason}))
        return
    apart = Apart(workers=1)
    verdict = check(payload, False, compiled, OutputValidation(mode="strict"), look=apart.look)
    apart.close()
    assert len(verdict.for_agent) < 1_000
    assert len(verdict.for_record) < 1_500
    print(json.dumps({"action": verdict.action, "text": verdict.for_record}))


if __name__ == "__main__":
    main(sys.argv[1])
