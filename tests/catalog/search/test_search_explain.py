"""Why did a tool rank where it did, or not appear at all?"""

from collections.abc import Iterator

import pytest

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.explain import explain
from mcpproxy.catalog.search.explanation import EVIDENCE, absent
from mcpproxy.catalog.search.index import SearchIndex

CREATE = Document(
    id="forge:create_issue",
    server="forge",
    name="create_issue",
    description="Open a new issue",
    input_schema={"properties": {"labels": {"description": "labels of the issue"}}},
)
LIST = Document(id="forge:list_issues", server="forge", name="list_issues", description="List issues")
RAIN = Document(id="weather:rain", server="weather", name="rain", description="Will it rain?")


@pytest.fixture
def index() -> Iterator[SearchIndex]:
    made = SearchIndex()
    made.put("forge", [CREATE, LIST])
    made.put("weather", [RAIN])
    assert made.settle(30)
    yield made
    made.close()


def test_every_field_says_what_it_gave(index: SearchIndex) -> None:
    told = explain(index.rank("create an issue"), CREATE, limit=5)
    assert (told.shown, told.rank, told.reason) == (True, 1, "shown at rank 1")
    issue = next(match for match in told.matches if match.stem == "issu")
    assert set(issue.fields) == {"name", "description", "parameter_texts"}
    assert issue.fields["name"] > issue.fields["description"] > issue.fields["parameter_texts"] > 0
    assert set(told.evidence) == set(EVIDENCE)
    assert told.similarity is not None and told.similarity > 0


def test_the_points_of_all_fields_add_up_to_the_word_score(index: SearchIndex) -> None:
    ranking = index.rank("create an issue with labels")
    told = explain(ranking, CREATE, limit=5)
    points = sum(sum(match.fields.values()) for match in told.matches)
    assert points == pytest.approx(float(ranking.words[ranking.snapshot.ids.index(CREATE.id)]), abs=0.02)


def test_a_repair_and_a_synonym_are_named_as_such(index: SearchIndex) -> None:
    because = {match.stem: match.because for match in explain(index.rank("add isue"), CREATE, limit=5).matches}
    assert because["issu"] == "repair of isu"
    assert because["creat"] == "synonym"


def test_an_exact_name_says_so(index: SearchIndex) -> None:
    told = explain(index.rank("create_issue"), CREATE, limit=5)
    assert told.exact
    assert "exact name" in told.reason


def test_a_tool_beyond_the_limit_says_its_rank(index: SearchIndex) -> None:
    told = explain(index.rank("create an issue"), LIST, limit=1)
    assert (told.shown, told.rank) == (False, 2)
    assert told.reason == "not shown: it ranks 2, and the answer holds 1"


def test_the_rank_counts_only_what_the_caller_may_see(index: SearchIndex) -> None:
    told = explain(index.rank("create an issue"), LIST, limit=1, allow=lambda tool_id: tool_id != CREATE.id)
    assert (told.shown, told.rank) == (True, 1)


def test_a_tool_that_does_not_match_says_so(index: SearchIndex) -> None:
    told = explain(index.rank("create_issue labels"), RAIN, limit=5)
    assert (told.shown, told.rank) == (False, None)
    assert "no word of the query" in told.reason


def test_use_moves_a_tool_up_and_says_so(index: SearchIndex) -> None:
    usage = {LIST.id: 1_000}
    told = explain(index.rank("issue"), LIST, limit=5, usage=usage)
    assert told.evidence["usage"] > 0 == explain(index.rank("issue"), LIST, limit=5).evidence["usage"]
    best = index.search("issue", usage=usage).best
    assert told.rank == [hit.id for hit in best].index(LIST.id) + 1


def test_a_hidden_tool_says_why_and_nothing_else() -> None:
    told = absent("forge:create_issue", "its server is disabled")
    assert told.reason == "not shown: its server is disabled"
    assert (told.shown, told.rank, told.matches, told.evidence) == (False, None, (), {})


def test_a_tool_that_is_not_indexed_says_so(index: SearchIndex) -> None:
    other = Document(id="x:y", server="x", name="y")
    assert "not in the index" in explain(index.rank("y"), other, limit=5).reason
