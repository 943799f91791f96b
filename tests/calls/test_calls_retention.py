"""The record does not grow without bound: a running proxy prunes it by itself."""

import asyncio
from pathlib import Path

import pytest
from tests.agent.wire_client import connected
from tests.calls.proxy import echo, running

from mcpproxy.activity import retention
from mcpproxy.activity.filters import parse_filter
from mcpproxy.activity.query import list_records


@pytest.mark.anyio
async def test_a_running_proxy_keeps_no_more_records_than_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "EVERY_SECONDS", 0.2)
    async with (
        running(tmp_path, [echo()], activity={"max_records": 20}) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        for _ in range(60):
            await agent.call("call_tool_read", '{"name":"echo:plain"}')
        async with asyncio.timeout(30):
            while list_records(proxy.app.storage, parse_filter({})).total > 40:
                await asyncio.sleep(0.1)
