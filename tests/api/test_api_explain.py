"""`/tools/explain`: the reasons behind the search, and behind what it does not find."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.serving import Rest, serving
from tests.calls.proxy import echo


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    servers = [
        echo(),
        echo("off", enabled=False),
        echo("held", quarantined=True),
        echo("new", trust="manual"),
        echo("few", enabled_tools=["reads"]),
        {"name": "gone", "command": "/nonexistent/server"},
    ]
    with serving(tmp_path_factory.mktemp("explain") / "data", servers) as found:
        yield found


def why(rest: Rest, tool: str, **more: Any) -> Any:
    asked = {"q": "takes a city", "tool": tool, **more}
    (told,) = rest.ask("GET", "tools/explain", params=asked).json()["data"]["tools"]
    assert told["id"] == tool
    return told


def test_the_best_tools_come_in_the_order_of_the_search_each_with_its_reasons(rest: Rest) -> None:
    told = rest.get("tools/explain?q=takes a city&limit=2")
    found = rest.get("tools/search?q=takes a city&limit=2")["tools"]
    assert told["query"] == "takes a city"
    assert [one["id"] for one in told["tools"]] == [one["name"] for one in found]
    assert [one["reason"] for one in told["tools"]] == ["shown at rank 1", "shown at rank 2"]
    first = told["tools"][0]
    assert "words" in first["evidence"] and "citi" in {match["stem"] for match in first["matches"]}
    assert rest.get("tools/explain?q=xyzzyqwrt")["tools"] == []


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("off:reads", "its server is disabled"),
        ("held:reads", "its server is quarantined"),
        ("new:reads", "it is new and waits for approval"),
        ("few:deletes", "enabled_tools or disabled_tools of its server leaves it out"),
        ("gone:reads", "its server has not listed its tools yet"),
        ("echo:deletes", "no word of the query stands in it, and its meaning is not near enough"),
    ],
)
def test_a_tool_that_is_not_found_says_why(rest: Rest, tool: str, reason: str) -> None:
    told = why(rest, tool)
    assert (told["shown"], told["rank"], told["reason"]) == (False, None, f"not shown: {reason}")


def test_a_tool_beyond_the_limit_says_so(rest: Rest) -> None:
    second = rest.get("tools/explain?q=takes a city&limit=2")["tools"][1]["id"]
    assert why(rest, second, limit=1)["reason"] == "not shown: it ranks 2, and the answer holds 1"


def test_it_can_be_asked_as_an_agent_with_a_token_sees_it(rest: Rest) -> None:
    rest.post("tokens", {"name": "narrow", "tools": ["strict_*"]}, status=201)
    assert why(rest, "echo:strict_input", token="narrow")["shown"]
    assert why(rest, "echo:deletes", token="narrow")["reason"] == "not shown: it is not in the scope of the token"
    seen = rest.get("tools/explain?q=takes a city&token=narrow")["tools"]
    assert {one["id"].partition(":")[2] for one in seen} == {"strict_input"}


@pytest.mark.parametrize("query", ["tool=echo:nothing", "tool=nobody:reads", "tool=echo", "token=nobody"])
def test_what_is_nowhere_is_404(rest: Rest, query: str) -> None:
    rest.error("GET", f"tools/explain?q=x&{query}", 404)
