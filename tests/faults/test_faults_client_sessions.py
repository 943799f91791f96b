"""What do clients cost that open a session and never come back? A place for a while; those in use keep theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from tests.agent.wire_client import WireClient
from tests.calls.proxy import Proxy, echo, running
from tests.support.children import run, until

from mcpproxy.agent import http, sessions

MANY = 1000
READ = '{"name":"echo:reads"}'
WAIT = '{"name":"echo:slow","args":{"pause":1}}'


async def open_sessions(connections: aiohttp.ClientSession, proxy: Proxy, count: int) -> list[WireClient]:
    """Clients past their handshake, opened one after the other."""
    clients = [WireClient(connections, proxy.mcp, era="legacy", lane=True) for _ in range(count)]
    for client in clients:
        await client.connect()
    return clients


async def is_open(client: WireClient) -> bool:
    answer = await client.call("call_tool_read", READ)
    assert answer.status in (200, 404), answer
    return answer.status == 200


def test_a_thousand_idle_sessions_expire_and_one_in_use_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_SWEEP_EVERY", 0.05)

    async def main() -> None:
        async with running(tmp_path, [echo()]) as proxy, aiohttp.ClientSession() as connections:
            face = proxy.app.agent.http
            none = len(asyncio.all_tasks())
            (warm,) = await open_sessions(connections, proxy, 1)
            each = len(asyncio.all_tasks()) - none
            clients = await open_sessions(connections, proxy, MANY)
            assert len(face.sessions) == 1 + MANY
            waiting = asyncio.create_task(clients[0].call("call_tool_read", WAIT))
            await until(lambda: proxy.app.pipeline.in_flight == 1, "a call is under way")
            monkeypatch.setattr(sessions, "IDLE_SECONDS", 0.0)
            await until(lambda: len(face.sessions) == 1, "all but the one in use are closed")
            monkeypatch.setattr(sessions, "IDLE_SECONDS", 3600.0)
            assert (await waiting).decoded["result"]["content"][0]["text"] == "done"
            assert await is_open(clients[0])
            for expired in (warm, clients[1], clients[-1]):
                assert not await is_open(expired)
                await expired.connect()
                assert await is_open(expired)
            assert len(face.sessions) == 4
            await until(lambda: len(asyncio.all_tasks()) <= none + 4 * each, "nothing of the others is left")

    run(main(), "uvloop")


def test_above_max_sessions_the_longest_idle_make_room(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            running(tmp_path, [echo()], max_sessions=20) as proxy,
            aiohttp.ClientSession() as connections,
        ):
            first = await open_sessions(connections, proxy, 20)
            assert await is_open(first[0])  # which makes it the one that was used last
            later = await open_sessions(connections, proxy, 5)
            await until(lambda: len(proxy.app.agent.http.sessions) == 20, "there are no more than there may be")
            assert [await is_open(client) for client in first] == [True, *[False] * 5, *[True] * 14]
            assert all([await is_open(client) for client in later])

    run(main(), "uvloop")
