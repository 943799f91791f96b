"""What does one answer carry?"""

import json
from typing import Any

import pytest

from mcpproxy.catalog.search.budget import Answer, Candidate, Detail, build_answer
from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.tokens import estimate

FULL = {"name", "description", "inputSchema", "score", "server", "annotations", "call_with"}
COMPACT = {"name", "score", "signature", "description", "annotations", "call_with"}


def candidate(number: int, parameters: int = 4, **more: Any) -> Candidate:
    schema = {
        "type": "object",
        "properties": {
            f"option_{n}": {"type": "string", "description": f"The value of option {n}, as the service wants it."}
            for n in range(parameters)
        },
    }
    document = Document(
        id=f"server:tool_{number}",
        server="server",
        name=f"tool_{number}",
        description=f"Does thing {number}. And says more about it in a second sentence.",
        input_schema=schema,
        **more,
    )
    return Candidate(document, round(1 - number / 100, 2), {"readOnlyHint": True}, "call_tool_read")


def tokens(answer: Answer) -> int:
    return estimate(json.dumps(answer.tools, ensure_ascii=False, separators=(",", ":")))


def shapes(answer: Answer) -> list[bool]:
    for entry in answer.tools:
        assert set(entry) in (FULL, COMPACT)
    return ["inputSchema" in entry for entry in answer.tools]


def test_a_small_answer_carries_every_schema_and_no_note() -> None:
    answer = build_answer([candidate(n) for n in range(5)], max_tokens=4000)
    assert shapes(answer) == [True] * 5
    assert (answer.full, answer.left_out, answer.note) == (5, 0, None)


def test_a_large_answer_gives_the_best_their_schemas_the_rest_a_line_and_says_so() -> None:
    answer = build_answer([candidate(n, parameters=20) for n in range(15)], max_tokens=4000)
    assert 0 < answer.full < 15
    assert shapes(answer) == [True] * answer.full + [False] * (15 - answer.full)
    assert answer.note is not None and f"{answer.full} of 15" in answer.note and "describe_tool" in answer.note


@pytest.mark.parametrize("detail", ["full", "compact", None])
@pytest.mark.parametrize("max_tokens", [400, 1000, 4000])
def test_an_answer_stays_under_its_budget(detail: Detail | None, max_tokens: int) -> None:
    answer = build_answer([candidate(n, parameters=15) for n in range(40)], max_tokens=max_tokens, detail=detail)
    assert tokens(answer) <= answer.tokens <= max_tokens


def test_a_long_query_takes_its_part_of_the_budget() -> None:
    candidates = [candidate(n, parameters=15) for n in range(40)]
    echo = "QUJDREVGR0hJ" * 80
    answer = build_answer(candidates, max_tokens=2000, echo=echo)
    assert tokens(answer) + estimate(echo) <= answer.tokens <= 2000


def test_full_spends_the_whole_budget_on_schemas_and_compact_none() -> None:
    candidates = [candidate(n, parameters=12) for n in range(15)]
    mixed, full, compact = (build_answer(candidates, max_tokens=4000, detail=d) for d in (None, "full", "compact"))
    assert full.full > mixed.full > compact.full == 0
    assert compact.note is None
    assert full.note is not None


def test_a_schema_is_given_whole_or_not_at_all() -> None:
    candidates = [candidate(n, parameters=20) for n in range(15)]
    answer = build_answer(candidates, max_tokens=3000, detail="full")
    for entry, given in zip(answer.tools, candidates, strict=True):
        assert entry.get("inputSchema", given.document.input_schema) == given.document.input_schema


def test_a_best_hit_that_is_too_large_becomes_a_line_and_the_next_keep_their_schemas() -> None:
    answer = build_answer([candidate(0, parameters=900), *(candidate(n) for n in range(1, 4))], max_tokens=4000)
    assert shapes(answer) == [False, True, True, True]


def test_hits_without_any_room_are_counted() -> None:
    answer = build_answer([candidate(n) for n in range(100)], max_tokens=600, detail="compact")
    assert len(answer.tools) + answer.left_out == 100
    assert answer.note is not None and f"{answer.left_out} more" in answer.note


def test_the_best_hit_comes_even_when_it_is_over_the_budget_alone() -> None:
    answer = build_answer([candidate(0, parameters=50)], max_tokens=200)
    assert [entry["name"] for entry in answer.tools] == ["server:tool_0"]


def test_no_hit_is_an_empty_answer() -> None:
    assert build_answer([], max_tokens=4000).tools == []


@pytest.mark.parametrize(
    ("text", "true"),
    [
        # Counted once with the o200k_base encoder.
        ("Open a new issue in a repository.", 8),
        ('{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}', 19),
        ("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY3ODkwYWJjZGVmZ2hpamtsbW5vcA==", 46),
        ("", 0),
    ],
)
def test_the_estimate_is_near_the_true_count(text: str, true: int) -> None:
    assert abs(estimate(text) - true) <= max(3, 0.25 * true)
