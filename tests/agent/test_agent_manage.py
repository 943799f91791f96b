"""Only the holder of the API key manages servers over MCP, and nobody approves anything there."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agent.wire_client import WireClient, connected
from tests.calls.proxy import KEY, echo, running

pytestmark = pytest.mark.anyio


async def _use(client: WireClient, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call(tool, json.dumps(arguments))
    result: dict[str, Any] = answer.decoded["result"]
    return result


async def _names(client: WireClient) -> set[str]:
    meta = f',"_meta":{client.meta()}' if client.modern else ""
    body = f'{{"jsonrpc":"2.0","id":99,"method":"tools/list","params":{{{meta.lstrip(",")}}}}}'
    answer = await client.post(body, {"Mcp-Method": "tools/list"} if client.modern else {})
    return {tool["name"] for tool in answer.decoded["result"]["tools"]}


async def test_management_tools_exist_for_the_api_key_alone(tmp_path: Path) -> None:
    async with running(tmp_path, [echo()]) as proxy, connected(proxy.mcp, era="modern", lane=False) as agent:
        assert not {"upstream_servers", "quarantine_security"} & await _names(agent)
        answer = await agent.call("upstream_servers", '{"operation":"list"}')
        assert answer.decoded["error"]["message"] == "Unknown tool: upstream_servers"
        agent.headers["X-API-Key"] = KEY
        assert {"upstream_servers", "quarantine_security"} <= await _names(agent)
        agent.headers["X-API-Key"] = "wrong"
        assert (await agent.call("upstream_servers", '{"operation":"list"}')).status == 401


async def test_an_operator_manages_servers_over_mcp(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [echo(env={"TOKEN": "canary-secret"})]) as proxy,
        connected(proxy.mcp, era="modern", lane=False) as agent,
    ):
        agent.headers["X-API-Key"] = KEY
        shown = (await _use(agent, "upstream_servers", operation="list"))["structuredContent"]
        assert shown["servers"][0]["state"] == "ready"
        assert "canary-secret" not in json.dumps(shown)

        stopped = await _use(agent, "upstream_servers", operation="disable", name="echo")
        assert stopped["structuredContent"] == {"name": "echo", "state": "disabled"}
        await _use(agent, "upstream_servers", operation="enable", name="echo")
        upstream = proxy.app.pool.get("echo")
        assert upstream is not None
        await upstream.ready(20)
        restarted = await _use(agent, "upstream_servers", operation="restart", name="echo")
        assert "isError" not in restarted or restarted["isError"] is False
        logs = await _use(agent, "upstream_servers", operation="logs", name="echo")
        assert isinstance(logs["structuredContent"]["lines"], list)
        removed = await _use(agent, "upstream_servers", operation="remove", name="echo")
        assert removed["structuredContent"]["removed"] is True
        assert proxy.app.pool.get("echo") is None


async def test_a_server_that_an_agent_adds_starts_in_quarantine_and_cannot_be_approved_there(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    entry = {"name": "new", "command": "touch", "args": [str(marker)], "quarantined": False}
    async with running(tmp_path / "home") as proxy, connected(proxy.mcp, era="modern", lane=False) as agent:
        agent.headers["X-API-Key"] = KEY
        added = await _use(agent, "upstream_servers", operation="add", server=entry)
        assert added["structuredContent"] == {"name": "new", "state": "quarantined"}
        assert not marker.exists()
        held = await _use(agent, "quarantine_security", operation="list")
        assert held["structuredContent"]["quarantined"] == ["new"]
        refused = await _use(agent, "quarantine_security", operation="approve", name="new")
        assert refused["isError"] is True
        twice = await _use(agent, "upstream_servers", operation="add", server=entry)
        assert "already" in twice["content"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"operation": "add"}, "server is required"),
        ({"operation": "add", "server": {"name": "x"}}, "neither command nor url"),
        ({"operation": "enable"}, "name is required"),
        ({"operation": "enable", "name": "nobody"}, "Server 'nobody' not found"),
        ({"operation": "explode"}, "Invalid arguments"),
        ({"operation": "list", "surprise": 1}, "Invalid arguments"),
    ],
)
async def test_bad_management_requests_say_what_is_wrong(tmp_path: Path, arguments: dict[str, Any], words: str) -> None:
    async with running(tmp_path) as proxy, connected(proxy.mcp, era="modern", lane=False) as agent:
        agent.headers["X-API-Key"] = KEY
        result = await _use(agent, "upstream_servers", **arguments)
        assert result["isError"] is True
        assert words in result["content"][0]["text"]
