"""Does docs/intent.md tell the truth? Its examples are read by the code that they describe."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpproxy.config.models import IntentDeclaration
from mcpproxy.policy.annotations import call_with, check_annotations, effective_hints
from mcpproxy.policy.intent import read_intent
from mcpproxy.policy.operations import OPERATION_OF, OPERATIONS
from mcpproxy.policy.verdict import Refusal

PAGE = (Path(__file__).parents[2] / "docs" / "intent.md").read_text()
BLOCKS: list[dict[str, Any]] = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
CALLS = [block for block in BLOCKS if "arguments" in block]
TOOLS = {"retrieve_tools", "describe_tool", "read_cache", *OPERATION_OF}


def section(title: str) -> str:
    return PAGE.split(f"\n### {title}\n")[1].split("\n## ")[0].split("\n### ")[0]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call["name"]))
def test_every_example_call_is_accepted(call: dict[str, Any]) -> None:
    given = {key: value for key, value in call["arguments"].items() if key.startswith("intent")}
    assert read_intent(OPERATION_OF[call["name"]], IntentDeclaration(), **given).refusal is None
    assert len(CALLS) == 3


def test_the_settings_shown_are_the_defaults() -> None:
    (shown,) = (block["intent_declaration"] for block in BLOCKS if "intent_declaration" in block)
    assert shown == msgspec.to_builtins(IntentDeclaration())


def test_the_table_of_refusals_has_the_texts_of_the_code() -> None:
    two_key = IntentDeclaration(require_operation_type=True)
    refusals = [
        read_intent("read", two_key).refusal,
        read_intent("read", two_key, intent={}).refusal,
        read_intent("read", two_key, intent={"operation_type": "x"}).refusal,
        read_intent("read", two_key, intent={"operation_type": "write"}).refusal,
        read_intent("read", IntentDeclaration(), intent_data_sensitivity="x").refusal,
        read_intent("read", IntentDeclaration(), intent_reason="x" * 1001).refusal,
        check_annotations(
            "github:delete_repo",
            "read",
            effective_hints({"destructiveHint": True}, two_key),
            two_key,
        ),
    ]
    for refusal in refusals:
        assert isinstance(refusal, Refusal)
        (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{refusal.code}` "))
        assert row.endswith(f" `{refusal.message}` |")


def test_the_table_of_annotations_is_what_the_code_does() -> None:
    lines = section("What the annotations allow").splitlines()
    rows = [line for line in lines if line.startswith(("| `", "| neither"))]
    hints: list[dict[str, bool]] = [{"destructiveHint": True}, {"readOnlyHint": True}, {"readOnlyHint": False}, {}]
    settings = IntentDeclaration()
    for row, given in zip(rows, hints, strict=True):
        _, _, *cells, recommended, _ = (cell.strip() for cell in row.split("|"))
        effective = effective_hints(given, settings)
        assert recommended == f"`{call_with(effective)}`"
        for operation, cell in zip(OPERATIONS, cells, strict=True):
            refused = isinstance(check_annotations("s:t", operation, effective, settings), Refusal)
            assert refused == (cell == "refused"), row


def test_permissions_name_only_tools_that_exist_and_approve_none_that_change_something() -> None:
    approved = [
        *next(block["permissions"]["allow"] for block in BLOCKS if "ask" in block.get("permissions", {})),
        *next(block["permissions"]["allow"] for block in BLOCKS if "deny" in block.get("permissions", {})),
        *next(block["mcpAllowlist"] for block in BLOCKS if "mcpAllowlist" in block),
    ]
    names = [re.split(r"__|:", rule)[-1].rstrip(")") for rule in approved]
    assert set(names) == TOOLS - {"call_tool_write", "call_tool_destructive"}


def test_every_link_within_the_page_leads_somewhere() -> None:
    headings = {
        re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", PAGE, re.M)
    }
    links = set(re.findall(r"\(#([^)]+)\)", PAGE))
    assert links
    assert links <= headings
