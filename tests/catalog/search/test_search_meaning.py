"""How near is each tool to what a query means?"""

from dataclasses import replace

import numpy as np
import pytest

from mcpproxy.catalog.search import meaning
from mcpproxy.catalog.search.document import Document, fields_of
from mcpproxy.catalog.search.index import SearchIndex
from mcpproxy.catalog.search.meaning import Nearness, by_model, by_words, likeliest
from mcpproxy.catalog.search.semantic import static_encoder
from mcpproxy.catalog.search.snapshot import Snapshot


def snapshot_of(*documents: Document) -> Snapshot:
    index = SearchIndex()
    index.put("s", documents)
    assert index.settle(30)
    index.close()
    return index.snapshot


def tool(name: str, description: str = "", **parameters: str) -> Document:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return Document(f"s:{name}", "s", name, description=description, input_schema={"properties": properties})


def test_what_a_tool_asks_for_is_part_of_what_it_means() -> None:
    query = static_encoder().queries(["temperature in a city"])[0]
    silent, told = (
        static_encoder().tool(fields_of(one))
        for one in (tool("lookup", "Looks it up", q=""), tool("lookup", "Looks it up", q="City to get the weather of"))
    )
    assert told @ query > silent @ query + 0.1


def test_a_word_that_every_tool_holds_weighs_less_than_a_rare_one() -> None:
    snapshot = snapshot_of(*(tool(f"file_{n}", "Handles a file") for n in range(30)), tool("tax", "Handles an invoice"))
    plain = snapshot.vectors @ static_encoder().queries(["invoice file"])[0]
    weighed = by_words(snapshot, ["invoice file"], ["invoice", "file"]).similar
    assert weighed[-1] - weighed[0] > plain[-1] - plain[0]


def test_the_larger_model_speaks_of_the_likeliest_tools_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meaning, "CANDIDATES", 3)
    count = 12
    deep = np.eye(count, dtype=np.float32)
    snapshot = replace(snapshot_of(*(tool(f"t{n}") for n in range(count))), deep=deep)
    zeros = np.zeros(count, np.float32)
    before = Nearness(zeros, zeros[:, None], zeros, zeros > 0)
    order = np.arange(count, dtype=np.float32)
    near = by_model(snapshot, deep[10], ["weather"], before, order)
    assert near.hit.tolist() == [row == 10 for row in range(count)]
    assert int(near.whole.argmax()) == 10
    beyond = by_model(snapshot, deep[0], ["weather"], before, order)
    assert not beyond.hit.any()
    assert not beyond.whole[:9].any()


@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_the_likeliest_are_those_with_the_highest_values(count: int) -> None:
    order = np.array([3, 1, 4, 1.5, 9], np.float32)
    assert set(likeliest(order, count).tolist()) == {*sorted(range(5), key=lambda row: -order[row])[:count]}
