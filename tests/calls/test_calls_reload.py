"""A change of the configuration takes effect at once, on what it names and nothing else."""

import asyncio
from pathlib import Path

import pytest
from tests.agent.wire_client import connected
from tests.calls.proxy import echo, running

pytestmark = pytest.mark.anyio


async def test_tools_of_another_command_are_gone_with_it_even_where_the_new_one_never_comes_up(tmp_path: Path) -> None:
    async with running(tmp_path, [echo(), echo("other")]) as proxy:
        assert "echo:plain" in proxy.app.catalog.snapshot.tools
        proxy.rewrite(mcpServers=[{**echo(), "command": "no-such-command"}, echo("other")])
        async with asyncio.timeout(20):
            while "echo:plain" in proxy.app.catalog.snapshot.tools:
                await asyncio.sleep(0.05)
        assert "other:plain" in proxy.app.catalog.snapshot.tools


async def test_a_file_that_does_not_load_leaves_the_running_configuration_in_force(tmp_path: Path) -> None:
    async with running(tmp_path, [echo()]) as proxy, connected(proxy.mcp, era="legacy", lane=True) as agent:
        proxy.path.write_text('{"mcpServers": [{"name": "echo", "protocol": "carrier pigeon"}]}')
        async with asyncio.timeout(20):
            while proxy.app.config_error is None:
                await asyncio.sleep(0.05)
        assert "carrier pigeon" in proxy.app.config_error
        answer = await agent.call("call_tool_read", '{"name":"echo:plain"}')
        assert answer.decoded["result"]["content"][0]["text"] == "plain done"
