"""Do the server's hints allow the right variants, with the right texts, in both modes?"""

from typing import Any

import pytest

from mcpproxy.config.models import IntentDeclaration
from mcpproxy.policy.annotations import Hints, call_with, check_annotations, effective_hints
from mcpproxy.policy.operations import OPERATIONS, OperationType
from mcpproxy.policy.verdict import ALLOWED, Allowed, Refusal, Verdict

STRICT = IntentDeclaration()
LENIENT = IntentDeclaration(strict_server_validation=False)
CAUTIOUS = IntentDeclaration(unannotated="destructive")
SEEDS_ONLY = IntentDeclaration(refuse_read_on_modifying=False)

DELETE = {"destructiveHint": True, "readOnlyHint": False}
READ_ONLY = {"readOnlyHint": True}
MODIFYING = {"readOnlyHint": False}


def judge(
    operation: OperationType,
    annotations: Any,
    settings: IntentDeclaration = STRICT,
    tool: str = "github:delete_repo",
) -> Verdict:
    return check_annotations(tool, operation, effective_hints(annotations, settings), settings)


def refused(*args: Any, **kwargs: Any) -> Refusal:
    verdict = judge(*args, **kwargs)
    assert isinstance(verdict, Refusal)
    assert verdict.code == "SERVER_MISMATCH"
    return verdict


# Texts


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            "read",
            "Tool 'github:delete_repo' is marked destructive by server, "
            "use call_tool_destructive instead of call_tool_read",
        ),
        (
            "write",
            "Tool 'github:delete_repo' is marked destructive by server, "
            "use call_tool_destructive instead of call_tool_write",
        ),
    ],
)
def test_a_destructive_tool_is_refused_with_the_text_of_the_contract(operation: OperationType, message: str) -> None:
    assert refused(operation, DELETE).message == message


def test_a_modifying_tool_is_refused_through_call_tool_read_with_the_text_of_the_contract() -> None:
    assert refused("read", MODIFYING, tool="x").message == (
        "Tool 'x' is marked as modifying by server, use call_tool_write instead of call_tool_read"
    )


def test_the_refusal_carries_what_an_agent_needs_to_correct_itself() -> None:
    assert refused("read", DELETE).details == {
        "tool": "github:delete_repo",
        "tool_variant": "call_tool_read",
        "call_with": "call_tool_destructive",
        "hints": {"readOnlyHint": False, "destructiveHint": True},
        "assumed": False,
    }


def test_write_on_a_read_only_tool_is_allowed_with_a_remark() -> None:
    warning = "Tool 'github:list_repos' is marked read-only by server, call_tool_read would do"
    for settings in (STRICT, LENIENT):
        assert judge("write", READ_ONLY, settings, "github:list_repos") == Allowed((warning,))


def test_a_tool_name_is_repeated_whole_up_to_what_a_name_may_have() -> None:
    name = "s" * 64 + ":" + "t" * 128
    assert name in refused("read", DELETE, tool=name).message


def test_a_hostile_tool_name_is_repeated_short_and_on_one_line() -> None:
    message = refused("read", DELETE, tool="s:\x1b[2J\n" + "t" * 10_000).message
    assert message.isprintable()
    assert len(message) < 320


# Lenient mode


@pytest.mark.parametrize(("operation", "annotations"), [("read", DELETE), ("write", DELETE), ("read", MODIFYING)])
def test_lenient_mode_allows_what_strict_mode_refuses_and_leaves_the_same_words_as_a_warning(
    operation: OperationType, annotations: dict[str, Any]
) -> None:
    strict_text = refused(operation, annotations).message
    allowed = judge(operation, annotations, LENIENT)
    assert allowed == Allowed((f"{strict_text} (allowed: strict_server_validation is off)",))


def test_lenient_mode_has_no_remark_where_nothing_conflicts() -> None:
    for operation in OPERATIONS:
        assert judge(operation, None, LENIENT) is ALLOWED
    assert judge("destructive", DELETE, LENIENT) is ALLOWED


# The switches


def test_refuse_read_on_modifying_can_be_switched_off_without_a_remark() -> None:
    assert judge("read", MODIFYING, SEEDS_ONLY) is ALLOWED
    assert refused("read", DELETE, SEEDS_ONLY)


def test_unannotated_tools_are_trusted_by_default() -> None:
    for annotations in (None, {}, {"title": "x", "idempotentHint": True, "openWorldHint": False}):
        for operation in OPERATIONS:
            assert judge(operation, annotations) is ALLOWED


def test_unannotated_destructive_applies_the_defaults_of_mcp_and_says_that_they_are_assumed() -> None:
    for annotations in (None, {}, {"idempotentHint": True}):
        for operation in ("read", "write"):
            refusal = refused(operation, annotations, CAUTIOUS)
            assert refusal.message == (
                "Tool 'github:delete_repo' is marked destructive by server, "
                f"use call_tool_destructive instead of call_tool_{operation}"
            )
            assert refusal.details["assumed"] is True
        assert judge("destructive", annotations, CAUTIOUS) is ALLOWED


def test_unannotated_destructive_reads_a_lone_destructive_hint_false_as_modifying() -> None:
    only_false = {"destructiveHint": False}
    assert judge("read", only_false) is ALLOWED
    assert "is marked as modifying by server, use call_tool_write" in refused("read", only_false, CAUTIOUS).message
    assert judge("write", only_false, CAUTIOUS) is ALLOWED


def test_unannotated_destructive_leaves_a_tool_with_a_read_only_hint_alone() -> None:
    assert judge("read", READ_ONLY, CAUTIOUS) is ALLOWED
    assert judge("write", MODIFYING, CAUTIOUS) is ALLOWED


# Hints that are not hints


@pytest.mark.parametrize("odd", ["true", "false", 1, 0, [], {}, "no"])
def test_a_destructive_hint_of_a_wrong_type_counts_as_destructive(odd: Any) -> None:
    refusal = refused("write", {"readOnlyHint": True, "destructiveHint": odd})
    assert "is marked destructive by server" in refusal.message
    assert refusal.details["assumed"] is True


@pytest.mark.parametrize("odd", ["true", "false", 1, 0, [], {}])
def test_a_read_only_hint_of_a_wrong_type_opens_no_way_to_read(odd: Any) -> None:
    refusal = refused("read", {"readOnlyHint": odd})
    assert "is marked as modifying by server" in refusal.message
    assert refusal.details["assumed"] is True
    assert judge("write", {"readOnlyHint": odd}) is ALLOWED


def test_a_null_hint_is_absent() -> None:
    assert effective_hints({"readOnlyHint": None, "destructiveHint": None}, STRICT) == Hints()


@pytest.mark.parametrize("odd", ["readOnlyHint", [("readOnlyHint", True)], 7])
def test_annotations_that_are_not_an_object_hold_no_hints(odd: Any) -> None:
    assert effective_hints(odd, STRICT) == Hints()
    assert effective_hints(odd, CAUTIOUS) == Hints(False, True, assumed=True)


# call_with


@pytest.mark.parametrize(
    ("annotations", "settings", "variant"),
    [
        ({"destructiveHint": True}, STRICT, "call_tool_destructive"),
        ({"destructiveHint": True, "readOnlyHint": True}, STRICT, "call_tool_destructive"),
        ({"destructiveHint": True, "readOnlyHint": False}, STRICT, "call_tool_destructive"),
        ({"readOnlyHint": True}, STRICT, "call_tool_read"),
        ({"readOnlyHint": True, "destructiveHint": False}, STRICT, "call_tool_read"),
        ({"readOnlyHint": False}, STRICT, "call_tool_write"),
        ({"readOnlyHint": False, "destructiveHint": False}, STRICT, "call_tool_write"),
        ({"destructiveHint": False}, STRICT, "call_tool_write"),
        ({}, STRICT, "call_tool_write"),
        (None, STRICT, "call_tool_write"),
        ({}, CAUTIOUS, "call_tool_destructive"),
        (None, CAUTIOUS, "call_tool_destructive"),
        ({"destructiveHint": False}, CAUTIOUS, "call_tool_write"),
        ({"readOnlyHint": True}, CAUTIOUS, "call_tool_read"),
        ({"readOnlyHint": False}, CAUTIOUS, "call_tool_write"),
    ],
)
def test_call_with_recommends_on_the_same_hints_as_the_gate(
    annotations: dict[str, Any] | None, settings: IntentDeclaration, variant: str
) -> None:
    hints = effective_hints(annotations, settings)
    assert call_with(hints) == variant
    recommended: Any = variant.removeprefix("call_tool_")
    assert check_annotations("s:t", recommended, hints, settings) is ALLOWED
