"""What if a client leaves in mid-call? The upstream is told, the record says so, and nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import psutil
import pytest
from sqlalchemy import func, select
from tests.agent.wire_client import ACCEPT, WireClient, connected
from tests.calls.proxy import KEY, Proxy, running
from tests.faults.clients import bad
from tests.support.children import run, until

from mcpproxy.activity.tables import activity
from mcpproxy.calls.model import Call

WAVES, WAVE = 10, 10
# One that is silent, and one whose progress has turned the answer into a stream by the time that nobody reads it.
SILENT = ("read", "bad:never", "{}")
TALKING = ("write", "bad:progress", '{"count":3,"every":0,"answer":false}')

Ask = Callable[[str, str, str], Awaitable[object]]


class Upstream:
    """What the server was sent, read from its record."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._lines = path.open()
        self._heard: Counter[str] = Counter()

    def heard(self, method: str) -> int:
        """How often so far."""
        self._heard.update(json.loads(line)["method"] for line in self._lines)
        return self._heard[method]


def test_a_thousand_clients_that_leave_leave_nothing_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = tmp_path / "record"
    server = {"name": "bad", **bad("never", "progress", record=str(record))}

    async def main() -> None:
        async with running(tmp_path / "home", [server]) as proxy, AsyncExitStack() as stack:
            upstream, asks = Upstream(record), await ways(proxy, stack)
            left = 0
            for wave in range(1 + WAVES):
                begun = [
                    asyncio.ensure_future(ask(*what))
                    for ask, what in itertools.product(asks, (SILENT, TALKING))
                    for _ in range(WAVE if wave else 1)
                ]
                left += len(begun)
                await until(lambda: upstream.heard("tools/call") == left, "the upstream has every call")  # noqa: B023
                for call in begun:
                    call.cancel()
                await until(lambda: upstream.heard("notifications/cancelled") == left, "each is cancelled")  # noqa: B023
                await until(lambda: recorded(proxy) == {"interrupted": left}, "each is on record")  # noqa: B023
                await until(lambda: proxy.app.pipeline.in_flight == 0, "none is under way")
                if not wave:  # the first of each kind brought in what stays for good
                    tasks, files = len(asyncio.all_tasks()), descriptors()
            assert left >= 1000
            await until(lambda: len(asyncio.all_tasks()) <= tasks, "no task is left")
            await until(lambda: descriptors() <= files, "no descriptor is left")
            gc.collect()
            assert not [each for each in gc.get_objects() if type(each) is Call]

    run(main(), "uvloop")
    gc.collect()
    assert not [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]


def descriptors() -> int:
    """How many are open, but for those of the database: where two read at once, one more connection stays for good."""
    process = psutil.Process()
    return process.num_fds() - sum("mcpproxy.db" in file.path for file in process.open_files())


async def ways(proxy: Proxy, stack: AsyncExitStack) -> list[Ask]:
    """Every way to make a call: both lanes of both eras, and REST."""
    asks = []
    for era, lane in itertools.product(("legacy", "modern"), (True, False)):
        asks.append(by_mcp(await stack.enter_async_context(connected(proxy.mcp, era=era, lane=lane))))
    http = await stack.enter_async_context(aiohttp.ClientSession(headers={"X-API-Key": KEY}))
    return [*asks, by_rest(http, f"{proxy.url}/api/v1/tools/call")]


def by_mcp(client: WireClient) -> Ask:
    def ask(variant: str, name: str, args: str) -> Awaitable[object]:
        return client.call(f"call_tool_{variant}", f'{{"name":"{name}","args":{args}}}', progress="mine")

    return ask


def by_rest(http: aiohttp.ClientSession, url: str) -> Ask:
    async def ask(variant: str, name: str, args: str) -> None:
        body = {"name": name, "variant": variant, "arguments": json.loads(args)}
        async with http.post(url, json=body, headers={"Accept": ACCEPT}) as answer:
            await answer.read()

    return ask


def recorded(proxy: Proxy) -> dict[str, int]:
    """How often a call to the server came to which end."""
    statuses = select(activity.c.status, func.count()).where(
        activity.c.type == "tool_call", activity.c.server_name == "bad"
    )
    with proxy.app.storage.read() as connection:
        rows = connection.execute(statuses.group_by(activity.c.status)).all()
    return {row[0]: row[1] for row in rows}
