"""Which tools hold the words of a query, and which word did it mean?"""

import numpy as np

from mcpproxy.catalog.search.document import Document, fields_of
from mcpproxy.catalog.search.lexical import Lexicon, Vocabulary, impacts_of, lexicon_of, postings_of
from mcpproxy.catalog.search.spelling import Speller, edits
from mcpproxy.catalog.search.words import stem


def lexicon(*servers: list[Document]) -> Lexicon:
    vocabulary = Vocabulary()
    parts = [postings_of((impacts_of(fields_of(one)) for one in documents), vocabulary) for documents in servers]
    return lexicon_of(vocabulary, parts, [len(documents) for documents in servers])


def tool(name: str, description: str = "", **more: object) -> Document:
    return Document(id=f"s:{name}", server="s", name=name, description=description, **more)  # type: ignore[arg-type]


def test_a_word_in_the_name_counts_more_than_in_the_description_and_there_more_than_in_a_parameter() -> None:
    found = lexicon(
        [
            tool("invoice"),
            tool("thing", "An invoice"),
            tool("other", input_schema={"properties": {"invoice": {"type": "string"}}}),
            tool("last", input_schema={"properties": {"x": {"description": "of the invoice"}}}),
            tool("none"),
        ]
    )
    scores = found.score({stem("invoice"): 1.0})
    assert list(np.argsort(-scores, kind="stable")) == [0, 1, 2, 3, 4]
    assert scores[4] == 0


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    found = lexicon([tool("get_a"), tool("get_b"), tool("get_c"), tool("merge_c")])
    assert found.rarity(stem("merge")) > found.rarity(stem("get"))


def test_a_longer_description_does_not_win_by_length() -> None:
    found = lexicon([tool("a", "Refund a payment"), tool("b", "Refund a payment " + "and many other words " * 40)])
    scores = found.score({stem("refund"): 1.0})
    assert scores[0] > scores[1] > 0


def test_repeating_a_word_saturates() -> None:
    found = lexicon([tool("a", "issue"), tool("b", "issue " * 2000)])
    scores = found.score({stem("issue"): 1.0})
    assert scores[1] <= 3 * scores[0]


def test_a_title_adds_only_what_the_name_does_not_say() -> None:
    same = impacts_of(fields_of(tool("create_issue")))
    assert impacts_of(fields_of(tool("create_issue", title="Create issue"))) == same
    assert stem("ticket") in impacts_of(fields_of(tool("create_issue", title="New ticket")))


def test_servers_are_joined_in_order() -> None:
    found = lexicon([tool("alpha")], [], [tool("beta"), tool("alpha")])
    assert list(found.score({stem("alpha"): 1.0}) > 0) == [True, False, True]
    assert found.count(stem("alpha")) == 2


def test_a_stem_numbered_after_the_lexicon_was_made_matches_nothing() -> None:
    found = lexicon([tool("alpha")])
    found.vocabulary.number("later")
    assert found.count("later") == 0
    assert not found.score({"later": 1.0}).any()


def test_an_empty_lexicon_scores_nothing() -> None:
    assert len(lexicon().score({"x": 1.0})) == 0


def test_typing_errors_are_repaired() -> None:
    speller = Speller(lexicon([tool("create_issue"), tool("list_repositories"), tool("translate_text")]))
    assert speller.near(stem("isue")) == [stem("issue")]
    assert speller.near(stem("isseu")) == [stem("issue")]
    assert speller.near(stem("repositry")) == [stem("repository")]
    assert speller.near(stem("trnaslte")) == [stem("translate")]


def test_a_word_too_far_from_any_other_is_not_repaired() -> None:
    speller = Speller(lexicon([tool("create_issue"), tool("list_repositories")]))
    for word in ("xyzzy", "tissue-box", "is", "1234", "issuu" * 8, "ïssue"):
        assert speller.near(stem(word)) == []


def test_of_equally_near_words_the_more_usual_comes_first() -> None:
    speller = Speller(lexicon([tool("add_comment"), tool("list_commits"), tool("get_commit"), tool("commute")]))
    assert speller.near("commnt") == ["commit", "comment"]


def test_swapped_neighbours_are_one_edit() -> None:
    assert edits("isseu", "issue", 1) == 1
    assert edits("issue", "issue", 1) == 0
    assert edits("abcdef", "xyz", 2) == 3
