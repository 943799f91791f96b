"""Can one client get what is another's? All of them use the same request ids and progress tokens, at the same time."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

from tests.agent.wire_client import WireClient, connected
from tests.calls.proxy import running
from tests.faults.clients import bad
from tests.support.children import run

CLIENTS = 200
EVERY_WAY = list(itertools.product(("legacy", "modern"), (True, False)))


async def one(client: WireClient, number: int, all_there: asyncio.Barrier) -> None:
    """Ask for something that nobody else asks for; the words of the progress are as long as the number is high."""
    await all_there.wait()
    client.restart_ids()
    asked = json.dumps({"name": "bad:echo", "args": {"for": number}})
    answer = (await client.call("call_tool_read", asked)).decoded
    assert (answer["id"], answer["result"]["structuredContent"]) == (1, {"for": number})
    asked = json.dumps({"name": "bad:progress", "args": {"count": 1, "every": 0.1, "size": number}})
    told = await client.call("call_tool_read", asked, progress="same")
    assert told.decoded["id"] == 2
    reports = [json.loads(message)["params"] for message in told.before if b"notifications/progress" in message]
    assert [len(report["message"]) for report in reports] == [number]


def test_two_hundred_clients_with_equal_ids_each_get_their_own_answer(tmp_path: Path) -> None:
    async def with_client(url: str, number: int, all_there: asyncio.Barrier) -> None:
        era, lane = EVERY_WAY[number % len(EVERY_WAY)]
        async with connected(url, era=era, lane=lane) as client:
            await one(client, number, all_there)

    async def main() -> None:
        async with running(tmp_path, [{"name": "bad", **bad("echo", "progress")}]) as proxy:
            all_there = asyncio.Barrier(CLIENTS)
            await asyncio.gather(*(with_client(proxy.mcp, number, all_there) for number in range(CLIENTS)))

    run(main(), "uvloop")
