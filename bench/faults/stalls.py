"""For how long does a fault stop everything else? The longest turn of the event loop, in CPU time.

Nobody else's work on the machine changes that, so it tells what latencies on a busy machine cannot. The proxy runs in
this process, on asyncio's own loop, whose every callback is timed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from pathlib import Path

from tests.calls.proxy import running
from tests.faults.upstream_house import BAD, LIMIT, Upstreams, agents, bring_about, recovered
from tests.faults.upstream_table import Fault

TRIES = 3


class Turns:
    """How long each turn took since the last look."""

    def __init__(self) -> None:
        self._took: list[float] = []
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            run(handle)
            self._took.append(time.thread_time() - began)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign,assignment]

    def look(self) -> tuple[float, float]:
        """The longest and all together, in ms."""
        took, self._took = self._took, []
        return max(took, default=0) * 1000, sum(took) * 1000


async def stalls(chosen: list[Fault]) -> dict[str, tuple[float, float]]:
    """The longest turn and all turns of one time of each fault, in ms of CPU: the best of some tries."""
    logging.disable(logging.WARNING)  # that servers fail is no news here
    turns = Turns()
    found: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-") as scratch, Upstreams(Path(scratch)) as upstreams:
        servers = [{"name": name, **spec} for name, spec in upstreams.specs().items()]
        async with (
            running(Path(scratch) / "home", servers, max_result_bytes=LIMIT) as proxy,
            agents(proxy.mcp, 1) as (agent,),
        ):
            for server in BAD:
                await recovered(agent, server)
            for fault in chosen:
                tries = []
                for _ in range(TRIES):
                    turns.look()
                    await bring_about(fault, agent, upstreams, os.getpid())
                    tries.append(turns.look())
                    await recovered(agent, fault.server)
                found[fault.id] = min(tries)
    return found
