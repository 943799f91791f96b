"""Tools that the operator does not want are nowhere: not listed, not found, not callable."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.wire_client import connected
from tests.calls.proxy import echo, running

from mcpproxy.catalog.visible import is_wanted
from mcpproxy.config.models import Server


@pytest.mark.parametrize(
    ("given", "seen", "hidden"),
    [
        ({}, ["a", "b"], []),
        ({"enabled_tools": ("a", "get_*")}, ["a", "get_x"], ["b", "A", "xget_"]),
        ({"enabled_tools": ()}, [], ["a"]),
        ({"disabled_tools": ("a", "delete_*")}, ["b", "undelete_x"], ["a", "delete_x"]),
        ({"enabled_tools": ("*",), "disabled_tools": ("a",)}, ["b"], ["a"]),
    ],
)
def test_what_is_disabled_stays_out_whatever_is_enabled(
    given: dict[str, Any], seen: list[str], hidden: list[str]
) -> None:
    server = Server(name="s", command="c", **given)
    assert [name for name in seen if is_wanted(server, name)] == seen
    assert not [name for name in hidden if is_wanted(server, name)]


@pytest.mark.anyio
async def test_a_disabled_tool_is_neither_listed_nor_found_nor_callable(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [echo(disabled_tools=["del*"])]) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        assert "echo:deletes" not in proxy.app.catalog.snapshot.tools
        assert "echo:plain" in proxy.app.catalog.snapshot.tools
        found = (await agent.call("retrieve_tools", '{"query":"deletes"}')).decoded["result"]["structuredContent"]
        assert "echo:deletes" not in json.dumps(found["tools"])
        called = (await agent.call("call_tool_destructive", '{"name":"echo:deletes"}')).decoded["result"]
        assert called["structuredContent"]["error"]["code"] == "UNKNOWN_TOOL"
