"""Does a caller see and do exactly what its token says?"""

from typing import Any

import pytest

from mcpproxy.policy.access import Scope, check_access, unknown_server, unknown_tool
from mcpproxy.policy.operations import OPERATIONS
from mcpproxy.policy.verdict import ALLOWED, Refusal


def code(scope: Scope, server: str, tool: str, operation: Any = "read") -> str:
    verdict = check_access(scope, server, tool, operation)
    return verdict.code if isinstance(verdict, Refusal) else "allowed"


def test_everything_sees_every_name_and_allows_every_operation() -> None:
    for server, tool in (("github", "list"), ("a b", "ü\n*[x]"), ("", "")):
        assert Scope.everything().sees_server(server)
        for operation in OPERATIONS:
            assert check_access(Scope.everything(), server, tool, operation) is ALLOWED


def test_server_globs_bound_what_is_seen() -> None:
    scope = Scope(servers=("git*", "notes"))
    assert scope.sees_tool("github", "x")
    assert scope.sees_tool("notes", "x")
    assert not scope.sees_tool("slack", "x")
    assert not scope.sees_tool("notes2", "x")


def test_a_tool_glob_without_a_colon_is_the_bare_name_on_every_server() -> None:
    scope = Scope(tools=("list_*", "get"))
    assert scope.sees_tool("github", "list_repos")
    assert scope.sees_tool("notes", "get")
    assert not scope.sees_tool("notes", "get_note")
    assert not scope.sees_tool("list_x", "delete")


def test_a_tool_glob_with_a_colon_names_the_server_too() -> None:
    scope = Scope(tools=("github:list_*", "n?tes:get"))
    assert scope.sees_tool("github", "list_repos")
    assert scope.sees_tool("notes", "get")
    assert not scope.sees_tool("gitlab", "list_repos")
    assert not scope.sees_tool("github", "delete_repo")


def test_the_star_of_a_server_glob_does_not_reach_past_the_colon() -> None:
    assert not Scope(tools=("git*:read",)).sees_tool("github", "x:read")
    assert Scope(tools=("git*:*read",)).sees_tool("github", "x:read")


def test_server_and_tool_globs_must_both_match() -> None:
    scope = Scope(servers=("github",), tools=("list_*", "slack:*"))
    assert scope.sees_tool("github", "list_repos")
    assert not scope.sees_tool("slack", "send")
    assert not scope.sees_tool("slack", "list_channels")


def test_a_server_none_of_whose_tools_can_be_in_scope_is_not_seen() -> None:
    scope = Scope(tools=("github:list_*",))
    assert scope.sees_server("github")
    assert not scope.sees_server("slack")
    assert not Scope(servers=("github",)).sees_server("slack")


def test_globs_are_case_sensitive() -> None:
    scope = Scope(servers=("GitHub",), tools=("List",))
    assert scope.sees_tool("GitHub", "List")
    assert not scope.sees_tool("github", "List")
    assert not scope.sees_tool("GitHub", "list")


def test_names_with_odd_characters_match_literally() -> None:
    scope = Scope(servers=("a.b+c (d)",), tools=("x|y", "tool$", "line\nbreak", "[[]odd]"))
    for tool in ("x|y", "tool$", "line\nbreak", "[odd]"):
        assert scope.sees_tool("a.b+c (d)", tool)
    assert not scope.sees_tool("aXb+c (d)", "x|y")
    for tool in ("x", "y", "tool", "tool$\n", "line", "break"):
        assert not scope.sees_tool("a.b+c (d)", tool)


def test_a_newline_at_the_end_of_a_name_is_not_overlooked() -> None:
    assert not Scope(servers=("github",)).sees_tool("github\n", "x")
    assert not Scope(tools=("delete",)).sees_tool("s", "delete\n")


def test_empty_globs_see_nothing_and_no_operations_allow_nothing() -> None:
    assert not Scope(servers=()).sees_tool("github", "x")
    assert not Scope(tools=()).sees_tool("github", "x")
    assert not Scope(tools=()).sees_server("github")
    assert code(Scope(operations=frozenset()), "github", "x") == "ACCESS_DENIED"


def test_a_hostile_glob_does_not_blow_up() -> None:
    scope = Scope(tools=("*a" * 40 + "b",))
    assert not scope.sees_tool("s", "a" * 5000)


def test_out_of_scope_reads_exactly_like_not_there() -> None:
    scope = Scope(servers=("github",), tools=("list_*",))
    assert check_access(scope, "slack", "list_x", "read") == unknown_server("slack")
    assert check_access(scope, "github", "delete_repo", "destructive") == unknown_tool("github", "delete_repo")
    assert unknown_server("slack").message == (
        "Server 'slack' not found. Use retrieve_tools to see which tools there are."
    )
    assert unknown_tool("github", "delete_repo").message == (
        "Tool 'github:delete_repo' not found. Use retrieve_tools to find its exact name."
    )


def test_an_unseen_tool_is_not_found_before_its_operation_is_judged() -> None:
    scope = Scope(servers=("github",), operations=frozenset({"read"}))
    assert code(scope, "slack", "x", "destructive") == "UNKNOWN_SERVER"


def test_an_operation_that_the_token_lacks_is_denied() -> None:
    scope = Scope(operations=frozenset({"read", "write"}))
    assert code(scope, "github", "x", "read") == "allowed"
    assert code(scope, "github", "x", "write") == "allowed"
    verdict = check_access(scope, "github", "x", "destructive")
    assert isinstance(verdict, Refusal)
    assert (verdict.code, verdict.message) == (
        "ACCESS_DENIED",
        "This token may not make destructive calls (allowed: read, write). Ask the operator for a token that may.",
    )
    assert verdict.details == {"operation_type": "destructive", "allowed": ["read", "write"]}


def test_an_unknown_operation_in_a_token_is_an_error_that_names_it() -> None:
    bad: Any = frozenset({"read", "delete"})
    with pytest.raises(ValueError, match="Unknown operation 'delete': must be read, write, or destructive"):
        Scope(operations=bad)


def test_scopes_with_the_same_words_are_equal() -> None:
    assert Scope(servers=("a",)) == Scope(servers=("a",))
    assert Scope(servers=("a",)) != Scope(servers=("b",))
    assert len({Scope(), Scope.everything()}) == 1


def test_a_hostile_name_is_repeated_short_and_on_one_line() -> None:
    for refusal in (unknown_server("s\n" * 5000), unknown_tool("s", "\x1b[2J\u202e" + "t" * 5000)):
        assert refusal.message.isprintable()
        assert len(refusal.message) < 300
