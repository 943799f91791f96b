"""Clients of both eras hear when what `tools/list` shows them is no longer true."""

import asyncio
from pathlib import Path

import pytest
from mcp.client import Client
from mcp_types import ToolListChangedNotification
from tests.calls.proxy import Proxy, echo, running

pytestmark = pytest.mark.anyio


async def _described(client: Client) -> str:
    tools = (await client.list_tools()).tools
    return next(tool.description or "" for tool in tools if tool.name == "retrieve_tools")


async def test_a_modern_client_that_listens_hears_of_another_server(tmp_path: Path) -> None:
    async with running(tmp_path, [echo()]) as proxy, Client(proxy.mcp, mode="auto") as client:
        assert "Connected servers: echo." in await _described(client)
        async with client.listen(tools_list_changed=True) as changes:
            proxy.rewrite(mcpServers=[echo(), echo("second")])
            async with asyncio.timeout(30):
                # The first may still tell of the start.
                async for _ in changes:
                    if "Connected servers: echo, second." in await _described(client):
                        break


@pytest.mark.parametrize(
    "change",
    [
        {"mcpServers": [echo(), echo("second")]},
        {"intent_declaration": {"require_operation_type": True}},
    ],
)
async def test_a_client_of_the_handshake_era_hears_of_a_change(tmp_path: Path, change: dict[str, object]) -> None:
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    async with (
        running(tmp_path, [echo()]) as proxy,
        Client(proxy.mcp, mode="legacy", message_handler=hear) as client,
    ):
        before = (await client.list_tools()).tools
        await _settle(proxy)
        heard.clear()
        proxy.rewrite(**change)
        async with asyncio.timeout(30):
            await heard.wait()
            while (await client.list_tools()).tools == before:
                heard.clear()
                await heard.wait()


async def _settle(proxy: Proxy) -> None:
    """Let what the start itself had to tell go by."""
    await asyncio.sleep(1.5)
    assert proxy.app.pool.settled
