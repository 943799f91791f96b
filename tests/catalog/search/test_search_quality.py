"""Does the right tool come up? Our own small set, queries that mean nothing, and the public sets where they are."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest
from bench.search.ours import Ours
from bench.search.sets import GOLDEN, SHARED, EvaluationSet, load_set, measures

NONSENSE = [
    "asdf qwer zxcv",
    "purple monkey dishwasher",
    "lorem ipsum dolor sit amet consectetur",
    "xkcd jabberwocky slithy toves",
    "flurbo gribble snorp",
    "qqqqq wwwww",
    "zebra xylophone marmalade",
    "blorptastic",
    "abcdefghijklmnopqrstuvwxyz",
    "!!!! ???? ....",
    "ñññ øøø ßßß",
    "ghjkl",
    "vorpal bandersnatch frumious",
    "eeny meeny miny moe",
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
    "0x8f3a9c 77b1",
]


@pytest.fixture(scope="module")
def golden() -> EvaluationSet:
    return load_set(GOLDEN)


@pytest.fixture(scope="module")
def ours(golden: EvaluationSet) -> Iterator[Ours]:
    made = Ours(golden.documents)
    yield made
    made.index.close()


def mean(found: EvaluationSet, ours: Ours, measure: str, kind: str | None = None) -> float:
    asked = [query for query in found.queries if kind is None or query["kind"] == kind]
    return statistics.mean(measures(query, ours.search(query["query"], 10))[measure] for query in asked)


def test_the_right_tool_is_among_the_first_five_of_our_own_set(golden: EvaluationSet, ours: Ours) -> None:
    assert mean(golden, ours, "recall@5") >= 0.93
    assert mean(golden, ours, "ndcg@10") >= 0.85


@pytest.mark.parametrize("kind", ["name", "typo", "form", "server"])
def test_names_typing_errors_word_forms_and_server_names_are_understood(
    golden: EvaluationSet, ours: Ours, kind: str
) -> None:
    assert mean(golden, ours, "recall@5", kind) == 1.0


def test_a_task_of_several_sentences_finds_a_tool_for_each(golden: EvaluationSet, ours: Ours) -> None:
    assert mean(golden, ours, "recall@5", "task") >= 0.6


@pytest.mark.parametrize("query", NONSENSE)
def test_nonsense_finds_nothing(ours: Ours, query: str) -> None:
    assert ours.search(query, 10) == []


@pytest.mark.skipif(not (SHARED / "mcpproxy45").is_dir(), reason=f"the public sets are not in {SHARED}")
def test_the_public_set_of_the_go_mcpproxy_keeps_its_recall() -> None:
    found = load_set(SHARED / "mcpproxy45")
    ours = Ours(found.documents)
    assert mean(found, ours, "recall@5") >= 0.92
    ours.index.close()
