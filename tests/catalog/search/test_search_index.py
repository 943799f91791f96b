"""How is the index kept in step, and what does it find?"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mcpproxy.catalog.search import index as index_module
from mcpproxy.catalog.search import segment as segment_module
from mcpproxy.catalog.search.document import Document
from mcpproxy.catalog.search.index import SearchIndex


def tools(server: str, *names: str, said: str = "") -> list[Document]:
    return [Document(f"{server}:{name}", server, name, description=said or f"Lets you {name}") for name in names]


@pytest.fixture
def index() -> Iterator[SearchIndex]:
    made = SearchIndex()
    made.put("forge", tools("forge", "create_issue", "list_issues", "close_issue", "fork_repository"))
    made.put("mail", tools("mail", "send_message", "search_messages", "trash_message"))
    made.put("weather", tools("weather", "forecast", "current_conditions"))
    assert made.settle(30)
    yield made
    made.close()


def found(index: SearchIndex, query: str, limit: int = 15) -> list[str]:
    return [hit.id for hit in index.search(query, limit).best]


def test_an_index_nobody_filled_finds_nothing() -> None:
    assert SearchIndex().search("create an issue").best == ()


@pytest.mark.parametrize("query", ["", "   ", "\n", "...", "the of and", "🙂", "\x00\x01", "a" * 50_000])
def test_a_query_without_words_finds_nothing(index: SearchIndex, query: str) -> None:
    assert index.search(query).total == 0


@pytest.mark.parametrize("query", ["forge:create_issue", "create_issue", "CREATE_ISSUE", "`create_issue`"])
def test_an_exact_name_or_id_comes_first(index: SearchIndex, query: str) -> None:
    assert found(index, query)[0] == "forge:create_issue"


def test_an_exact_name_has_the_score_one_and_all_others_less(index: SearchIndex) -> None:
    scores = [hit.score for hit in index.search("close_issue").best]
    assert scores[0] == 1.0
    assert all(0 < score < 1 for score in scores[1:])


def test_an_exact_name_comes_first_within_a_sentence(index: SearchIndex) -> None:
    assert found(index, "what are the arguments of trash_message when I search messages?")[0] == "mail:trash_message"


def test_scores_fall_from_the_best_on_and_stay_between_zero_and_one(index: SearchIndex) -> None:
    scores = [hit.score for hit in index.search("search the messages for an issue").best]
    assert len(scores) > 2
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_a_misspelt_word_is_repaired(index: SearchIndex) -> None:
    assert found(index, "creat isue")[0] == "forge:create_issue"
    assert found(index, "forcast")[0] == "weather:forecast"


def test_other_forms_of_a_word_match(index: SearchIndex) -> None:
    assert found(index, "forked repositories")[0] == "forge:fork_repository"


def test_the_name_of_a_server_in_the_query_brings_its_tools_up() -> None:
    index = SearchIndex()
    index.put("slack", tools("slack", "send_message", said="Send a message"))
    index.put("discord", tools("discord", "send_message", said="Send a message"))
    index.settle(30)
    assert found(index, "send a message on discord")[0] == "discord:send_message"
    assert found(index, "send a message on slack")[0] == "slack:send_message"
    index.close()


def test_a_query_in_another_language_finds_tools_described_in_it() -> None:
    index = SearchIndex()
    index.put("paper", tools("paper", "p1", said="使用关键词搜索论文") + tools("paper", "p2", said="获取当前天气"))
    index.put("cafe", tools("cafe", "c1", said="Réserver une table au café") + tools("cafe", "c2", said="Annuler"))
    index.settle(30)
    assert found(index, "搜索论文")[0] == "paper:p1"
    assert found(index, "reserver table cafe")[0] == "cafe:c1"
    index.close()


def test_a_query_of_many_thousand_words_is_answered(index: SearchIndex) -> None:
    assert found(index, "please create an issue about the weather forecast. " * 5000)


def test_a_limit_bounds_the_answer_and_the_total_counts_all_hits(index: SearchIndex) -> None:
    hits = index.search("issue", 1)
    assert (len(hits.best), hits.total >= 3) == (1, True)
    assert index.search("issue", 0).best == ()


def test_tools_that_are_not_allowed_are_neither_shown_nor_counted(index: SearchIndex) -> None:
    hits = index.search("issue message", 15, allow=lambda tool_id: tool_id.startswith("mail:"))
    assert hits.total == len(hits.best) == 3
    assert all(hit.id.startswith("mail:") for hit in hits.best)
    assert index.search("create_issue", 15, allow=lambda _: False).best == ()


def test_usage_settles_a_tie_and_nothing_more(index: SearchIndex) -> None:
    for server in ("b", "a"):
        index.put(server, tools(server, "convert_units", said="Convert units"))
    index.put("c", tools("c", "list_units", said="List units"))
    index.settle(30)
    assert found(index, "convert units")[:2] == ["a:convert_units", "b:convert_units"]
    used = index.search("convert units", usage={"b:convert_units": 50, "c:list_units": 900}).best
    assert [hit.id for hit in used][:2] == ["b:convert_units", "a:convert_units"]


def test_one_servers_change_is_found_and_reindexes_that_server_alone(
    index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def watched(server: str, *rest: Any) -> segment_module.Segment:
        built.append(server)
        return segment_module.build_segment(server, *rest)

    monkeypatch.setattr(index_module, "build_segment", watched)
    index.put("mail", tools("mail", "archive_newsletter"))
    assert index.settle(30)
    assert built == ["mail"]
    assert found(index, "newsletter") == ["mail:archive_newsletter"]
    assert "mail:send_message" not in found(index, "send message")
    assert found(index, "create issue")[0] == "forge:create_issue"


def test_a_server_that_lists_the_same_tools_again_is_not_indexed_again(index: SearchIndex) -> None:
    before = index.snapshot
    index.put("weather", tools("weather", "forecast", "current_conditions"))
    assert index.settle(30)
    assert index.snapshot is before


def test_a_server_that_is_gone_is_not_found(index: SearchIndex) -> None:
    index.drop("weather")
    index.drop("unknown")
    assert index.settle(30)
    assert found(index, "weather forecast") == []


def test_a_reader_sees_all_of_a_change_or_nothing_of_it() -> None:
    index = SearchIndex()
    first, second = tools("s", *(f"alpha_{n}" for n in range(50))), tools("s", *(f"alpha_new_{n}" for n in range(70)))
    index.put("s", first)
    index.settle(30)
    seen: set[int] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(index.search("alpha", 100).total)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(10):
        index.put("s", second)
        index.settle(30)
        index.put("s", first)
        index.settle(30)
    stop.set()
    reader.join()
    assert seen <= {50, 70}
    index.close()


def test_words_of_tools_long_gone_do_not_pile_up(index: SearchIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SPARE_STEMS", 50)
    for round_number in range(20):
        index.put("mail", tools("mail", *(f"w{round_number}x{n}q" for n in range(30))))
        assert index.settle(30)
    assert len(index.snapshot.lexicon.vocabulary) < 500
    assert found(index, "fork repository")[0] == "forge:fork_repository"


def test_a_failure_while_indexing_leaves_the_last_good_index_and_the_next_change_works(
    index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    for broken in ("build_segment", "join"):
        with monkeypatch.context() as patch:
            patch.setattr(index_module, broken, fail)
            index.put("new", tools("new", "thing"))
            assert index.settle(30)
    assert found(index, "create issue")[0] == "forge:create_issue"
    index.put("newer", tools("newer", "rotate_keys"))
    assert index.settle(30)
    assert found(index, "rotate keys") == ["newer:rotate_keys"]


def test_a_closed_index_still_answers_and_takes_nothing_in(index: SearchIndex) -> None:
    index.close()
    index.put("late", tools("late", "late_tool"))
    assert found(index, "create issue")[0] == "forge:create_issue"
    assert index.settle(1)
