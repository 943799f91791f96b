"""What may a client cost that does not read its answers? Bounded memory, for a while, and nobody else anything."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from pathlib import Path

import psutil
import pytest
from tests.agent.wire_client import connected
from tests.calls.proxy import running
from tests.faults.clients import PATIENCE, a_call, bad, connect, is_served, rest
from tests.journeys.support import KEY, Proxy, serving
from tests.support.children import run, until

from mcpproxy import http1

MEGABYTE = 1024 * 1024
LARGE = 16 * MEGABYTE
BIG = json.dumps({"name": "bad:big", "args": {"size": LARGE}})
# More of it than may be kept for those who do not read, and each within what may be kept for one.
READERS, REPORTS, REPORT_BYTES = 8, 100, 200_000
FLOOD = json.dumps({"name": "bad:progress", "args": {"count": REPORTS, "every": 0, "size": REPORT_BYTES}})
MOST_GROWTH = 80 * MEGABYTE
assert READERS * REPORTS * REPORT_BYTES > 1.8 * MOST_GROWTH


def test_a_client_that_reads_nothing_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "STALLED_SECONDS", 0.3)

    async def main() -> None:
        async with (
            running(tmp_path, [{"name": "bad", **bad("big")}]) as proxy,
            connected(proxy.mcp, era="legacy", lane=True) as client,
        ):
            reader, writer = await connect(proxy.url, window=4096)
            await until(lambda: is_held(writer), "the proxy has taken the connection")
            writer.write(a_call(client, BIG))
            await until(lambda: not is_held(writer), "the proxy has given it up")
            assert len(await rest(reader)) < LARGE
            writer.close()
            assert await is_served(proxy.url)

    run(main(), "uvloop")


def is_held(writer: asyncio.StreamWriter) -> bool:
    """Whether the other end of a connection, which is in this process too, is open."""
    ours = writer.get_extra_info("sockname")
    return any(ends.raddr == ours for ends in psutil.Process().net_connections("tcp4"))


def test_a_client_that_reads_slowly_gets_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "STALLED_SECONDS", 0.5)

    async def main() -> None:
        async with (
            running(tmp_path, [{"name": "bad", **bad("big")}]) as proxy,
            connected(proxy.mcp, era="legacy", lane=True) as client,
        ):
            reader, writer = await connect(proxy.url)
            writer.write(a_call(client, BIG))
            got = 0
            while got < LARGE:
                async with asyncio.timeout(PATIENCE):
                    got += len(await reader.readexactly(LARGE // 32))
                await asyncio.sleep(0.05)
            writer.close()

    run(main(), "uvloop")


def test_progress_for_those_who_do_not_read_takes_bounded_memory(tmp_path: Path) -> None:
    with serving(tmp_path / "home", {"bad": bad("progress"), "good": bad("echo")}) as proxy:
        proxy.await_ready("bad", "good")
        run(stall(proxy))


async def stall(proxy: Proxy) -> None:
    memory = psutil.Process(proxy.process.pid).memory_info
    async with contextlib.AsyncExitStack() as stack:
        ways = itertools.product(("legacy", "modern"), (True, False), range(READERS // 4))
        clients = [await stack.enter_async_context(connected(proxy.url, era=era, lane=lane)) for era, lane, _ in ways]
        # What is loaded at the first use and once is not what is measured: the index of tools, and the way of a flood.
        await clients[0].call("retrieve_tools", '{"query":"progress"}')
        await clients[0].call("call_tool_read", FLOOD, progress="read")
        await until(lambda: ended(proxy) == 1, "the first call is counted")
        before = memory().rss
        held = [await connect(proxy.url, window=4096) for _ in clients]
        for client, (_, writer) in zip(clients, held, strict=True):
            writer.write(a_call(client, FLOOD, progress="unread"))
        await until(lambda: ended(proxy) == 1 + READERS, "every flood has come to its end", PATIENCE)
        assert memory().rss - before < MOST_GROWTH
        async with connected(proxy.url, era="legacy", lane=True) as other:
            answer = await other.call("call_tool_read", '{"name":"good:echo","args":{"n":1}}')
            assert answer.decoded["result"]["structuredContent"] == {"n": 1}
        for _, writer in held:
            writer.close()


def ended(proxy: Proxy) -> int:
    """How many calls to the server that floods are over."""
    _, text = proxy.get("/metrics", {"X-API-Key": KEY})
    lines = [line for line in text.splitlines() if line.startswith('mcpproxy_calls_total{server="bad"')]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines)
