"""Are the verdicts the ones of the contract, and is the room pure?"""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import mcpproxy.policy
from mcpproxy.policy.verdict import Code, Refusal

SEVEN = {
    "INTENT_MISMATCH",
    "MISSING_INTENT",
    "MISSING_OPERATION_TYPE",
    "INVALID_OPERATION_TYPE",
    "INVALID_SENSITIVITY",
    "REASON_TOO_LONG",
    "SERVER_MISMATCH",
}
OTHERS = {
    "INTENT_CONFLICT",
    "INVALID_ARGUMENTS",
    "UNKNOWN_SERVER",
    "UNKNOWN_TOOL",
    "NOT_APPROVED",
    "ACCESS_DENIED",
    "UPSTREAM_UNAVAILABLE",
    "LOGIN_REQUIRED",
    "TIMEOUT",
    "RESULT_TOO_LARGE",
    "UPSTREAM_INVALID",
    "INPUT_REQUIRED",
    "RECORD_FAILED",
    "OUTPUT_INVALID",
}


def test_the_codes_are_exactly_those_of_the_contract() -> None:
    assert set(get_args(Code)) == SEVEN | OTHERS


def test_a_refusal_encodes_to_the_error_object_of_a_reply() -> None:
    refusal = Refusal("TIMEOUT", "too late", {"seconds": 3})
    assert msgspec.json.encode({"error": refusal}) == (
        b'{"error":{"code":"TIMEOUT","message":"too late","details":{"seconds":3}}}'
    )
    assert msgspec.to_builtins(Refusal("TIMEOUT", "too late"))["details"] == {}


def test_a_verdict_cannot_be_changed_by_a_later_stage() -> None:
    refusal = Refusal("TIMEOUT", "too late")
    with pytest.raises(AttributeError):
        refusal.code = "UNKNOWN_TOOL"  # type: ignore[misc]


def test_policy_loads_without_the_mcp_library_and_without_any_way_out() -> None:
    folder = Path(mcpproxy.policy.__file__).parent
    modules = sorted(f"mcpproxy.policy.{path.stem}" for path in folder.glob("[!_]*.py"))
    script = (
        f"import sys, importlib; [importlib.import_module(name) for name in {modules}]\n"
        "print(sorted({'mcp', 'asyncio', 'socket', 'sqlite3', 'starlette', 'aiohttp'} & sys.modules.keys()))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
