"""Text search: which words a text has, and that no query is syntax."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mcpproxy.activity.words import fts5_match, like_patterns, query_words, searchable, tsquery


def test_names_are_split_where_people_see_words() -> None:
    assert searchable("getHTTPUser_by-id2", None) == "get httpuser by id2 gethttpuser"


def test_each_word_counts_once_and_their_number_is_bounded() -> None:
    assert searchable(None, "a A a", "b") == "a b"
    assert len(searchable(None, " ".join(map(str, range(10_000)))).split()) == 256
    assert len(searchable(None, "x" * 10_000)) == 64


def test_a_star_after_a_word_asks_for_its_beginning() -> None:
    words = query_words("Creat* ISSUE *")
    assert words == [("creat", True), ("issue", False)]
    assert fts5_match(words) == '"creat"* AND "issue"'
    assert tsquery(words) == "'creat':* & 'issue'"
    assert like_patterns(words) == ["% creat%", "% issue %"]


@given(st.text())
def test_no_query_is_syntax(query: str) -> None:
    words = query_words(query)
    assert len(words) <= 20
    for word, _ in words:
        assert not re.search(r"[\W_]", word)
