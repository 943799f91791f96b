"""Is any task left over by a fault? Every row of the table once, through a whole proxy in this process."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest
from tests.calls.proxy import running
from tests.faults.upstream_house import BAD, LIMIT, Agent, Upstreams, agents, bring_about, recovered
from tests.faults.upstream_table import HTTP, STDIO, Fault
from tests.journeys.support import PATIENCE
from tests.support.children import until

from mcpproxy.upstream import server as life


def tasks() -> Counter[str]:
    """What runs on the loop, by name."""
    coroutines = [task.get_coro() for task in asyncio.all_tasks()]
    return Counter(getattr(coroutine, "__qualname__", "?") for coroutine in coroutines)


async def one_after_the_other(table: tuple[Fault, ...], agent: Agent, upstreams: Upstreams) -> None:
    for fault in table:
        result = await bring_about(fault, agent, upstreams, os.getpid())
        assert bool(result.get("isError")) is (fault.code is not None), result
        await recovered(agent, fault.server)


def test_no_fault_leaves_a_task_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 0.05)

    async def main() -> None:
        with Upstreams(tmp_path) as upstreams:
            servers = [{"name": name, **spec} for name, spec in upstreams.specs().items()]
            async with (
                running(tmp_path / "home", servers, max_result_bytes=LIMIT) as proxy,
                agents(proxy.mcp, 2) as (one, other),
            ):
                for server in BAD:
                    await recovered(one, server)
                before = tasks()
                await asyncio.gather(
                    one_after_the_other(STDIO, one, upstreams), one_after_the_other(HTTP, other, upstreams)
                )
                try:
                    await until(lambda: not tasks() - before)
                except AssertionError:
                    raise AssertionError(f"left over: {tasks() - before}") from None

    asyncio.run(asyncio.wait_for(main(), 3 * PATIENCE))
