"""What does somebody want done, and what does a tool do?"""

import pytest

from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.verbs import CREATE, DELETE, READ, SEND, UPDATE, kinds_of_query, kinds_of_tool


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("List my notes", READ),
        ("please remove the old branch", DELETE),
        ("I would like to rename a file", UPDATE),
        ("reply to the last mail", SEND),
        ("remember this for later", CREATE),
        ("weather in Lisbon", 0),
    ],
)
def test_a_wish_is_told_by_its_verb(sentence: str, kind: int) -> None:
    assert kinds_of_query([sentence]) == kind


def test_only_the_first_verb_is_the_wish() -> None:
    assert kinds_of_query(["Show the changes I added and the files I removed"]) == READ


@pytest.mark.parametrize(
    "question", ["What edits did I make?", "which files were deleted", "How many updates are there?"]
)
def test_a_question_wants_to_read_whatever_it_is_about(question: str) -> None:
    assert kinds_of_query([question]) == READ


def test_a_request_of_several_sentences_wants_all_of_them_done() -> None:
    assert kinds_of_query(["Find the bill.", "Delete the copy.", "Is it paid?"]) == READ | DELETE


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (Document("s:t", "s", "git_create_branch", description="Deletes nothing"), CREATE),
        (Document("s:t", "s", "git_status", description="Shows the working tree"), READ),
        (Document("s:t", "s", "zap", description="Zaps it", destructive=True), DELETE),
        (Document("s:t", "s", "zap", description="Zaps it", read_only=True), READ),
        (Document("s:t", "s", "zap", description="Zaps it"), 0),
        (Document("s:t", "s", "open_page", description="Opens a page"), READ | CREATE),
    ],
)
def test_a_tool_says_it_in_its_name_else_in_its_first_word_else_by_its_hints(document: Document, kind: int) -> None:
    assert kinds_of_tool(document) == kind
