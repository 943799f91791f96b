"""Which words does a text hold?"""

import threading

import pytest

from mcpproxy.catalog.search import words


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("create_issue", ["create", "issue"]),
        ("createIssue", ["create", "issue"]),
        ("create-issue", ["create", "issue"]),
        ("getHTTPStatus2", ["get", "http", "status", "2"]),
        ("oauth2Token", ["oauth", "2", "token"]),
        ("repos.list/all", ["repos", "list", "all"]),
    ],
)
def test_identifiers_are_split_at_every_seam(name: str, parts: list[str]) -> None:
    assert words.split(name) == parts


def test_a_camel_case_name_can_also_be_found_as_one_word() -> None:
    assert "createissu" in words.terms("createIssue")


def test_other_forms_of_a_word_have_one_stem() -> None:
    assert words.terms("cancelling cancelled cancels") == [words.stem("cancel")] * 3


def test_filler_words_are_left_out() -> None:
    assert words.terms("can you please help me with the") == []


def test_a_run_of_more_than_forty_characters_is_no_word() -> None:
    assert words.terms("a" * 41 + " issue " + "QUJD" * 5000) == ["issu"]


def test_accents_make_no_difference() -> None:
    assert words.terms("café") == words.terms("cafe")
    assert words.terms("한국어") == ["한국어"]


def test_scripts_without_spaces_are_matched_by_pairs_of_characters() -> None:
    assert words.terms("搜索论文") == ["搜索", "索论", "论文"]


def test_a_pasted_blob_does_not_push_the_words_out_of_a_long_query() -> None:
    query = "decode " + "QUJDREVG" * 3000 + " and save the image"
    assert words.query_text(query) == "decode and save the image"


def test_a_huge_query_is_capped() -> None:
    assert len(words.query_text("word " * 100_000)) <= words.MAX_QUERY


def test_stems_are_right_when_several_threads_stem_at_once() -> None:
    sample = [f"{base}{end}" for base in ("creat", "list", "search", "delet", "updat") for end in ("ing", "ed", "ion")]
    expected = [words.stem.__wrapped__(word) for word in sample]
    wrong: list[str] = []

    def work() -> None:
        for _ in range(100):
            if [words.stem.__wrapped__(word) for word in sample] != expected:
                wrong.append("stem")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
