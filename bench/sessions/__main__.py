"""What do idle sessions cost, and do they go? `python -m bench.sessions [--sessions N]`.

Opens sessions of the handshake era and leaves them. Prints the memory and CPU of the proxy when there are none, when
all are open, when all have expired and when as many are open again, and how long another client's calls take meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from tests.agent.wire_client import WireClient
from tests.journeys import support
from tests.journeys.support import KEY, Proxy, tiny

RESULTS = Path(__file__).parents[1] / "results"
AT_ONCE = 32
IDLE_SECONDS = 10.0
READ = '{"name":"tiny:echo","args":{"text":"hello"}}'


class Meter:
    """What one process has used so far."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def cpu(self) -> float:
        """Seconds of processor time."""
        times = self._process.cpu_times()
        return times.user + times.system

    def megabytes(self) -> float:
        """Memory in use."""
        return self._process.memory_info().rss / 2**20

    def files(self) -> int:
        """Open descriptors."""
        return self._process.num_fds()


def launcher(folder: Path) -> Path:
    """A program that is `mcpproxy` but for sessions that can be made to expire."""
    path = folder / "mcpproxy"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bench.sessions.serve "$@"\n')
    path.chmod(0o755)
    return path


async def open_all(url: str, count: int) -> None:
    """Open sessions and leave them."""
    waiting = iter(range(count))
    async with aiohttp.ClientSession() as http:

        async def some() -> None:
            for _ in waiting:
                await WireClient(http, url, era="legacy", lane=True).connect()

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))


async def call_until(url: str, done: asyncio.Event) -> list[float]:
    """How long one call after the other takes until all is over."""
    times = []
    async with aiohttp.ClientSession() as http:
        client = WireClient(http, url, era="modern", lane=True)
        await client.connect()
        while not done.is_set():
            began = time.perf_counter()
            answer = await client.call("call_tool_read", READ)
            times.append(time.perf_counter() - began)
            assert answer.decoded["result"]["structuredContent"] == {"text": "hello"}
            await asyncio.sleep(0.01)
    return times


def open_sessions(proxy: Proxy) -> int:
    """How many sessions the proxy holds."""
    _, text = proxy.get("/metrics", {"X-API-Key": KEY})
    return next(int(float(line.split()[1])) for line in text.splitlines() if line.startswith("mcpproxy_sessions "))


async def measure(proxy: Proxy, count: int) -> dict[str, Any]:
    """Open them, look, and let them expire."""
    meter = Meter(proxy.process.pid)
    await open_all(proxy.url, 10)  # brings in what is loaded at the first use
    assert open_sessions(proxy) == 10
    found: dict[str, Any] = {"sessions": count, "none_mb": meter.megabytes(), "none_files": meter.files()}

    cpu, began = meter.cpu(), time.perf_counter()
    await open_all(proxy.url, count - 10)
    found |= {"open_seconds": time.perf_counter() - began, "open_cpu": meter.cpu() - cpu}
    assert open_sessions(proxy) == count
    found |= {"open_mb": meter.megabytes(), "open_files": meter.files()}

    cpu = meter.cpu()
    await asyncio.sleep(IDLE_SECONDS)
    found["idle_cpu_percent"] = (meter.cpu() - cpu) / IDLE_SECONDS * 100

    over = asyncio.Event()
    calling = asyncio.create_task(call_until(proxy.url, over))
    cpu, began = meter.cpu(), time.perf_counter()
    os.kill(proxy.process.pid, signal.SIGUSR1)
    while await asyncio.to_thread(open_sessions, proxy):
        await asyncio.sleep(0.2)
    found |= {"expire_seconds": time.perf_counter() - began, "expire_cpu": meter.cpu() - cpu}
    over.set()
    times = sorted(await calling)
    found |= {"calls": len(times), "call_ms_p50": statistics.median(times) * 1e3, "call_ms_max": times[-1] * 1e3}
    await asyncio.sleep(2)
    found |= {"after_mb": meter.megabytes(), "after_files": meter.files()}

    os.kill(proxy.process.pid, signal.SIGUSR2)
    await open_all(proxy.url, count)
    found |= {"again_mb": meter.megabytes(), "again_files": meter.files()}
    found["kb_each"] = (found["open_mb"] - found["none_mb"]) * 1024 / (count - 10)
    return found


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(f"{'':<28}{'memory':>12}{'files':>8}")
    titles = {
        "none": "no sessions",
        "open": f"{found['sessions']} idle",
        "after": "all expired",
        "again": "as many again",
    }
    for name, title in titles.items():
        print(f"{title:<28}{found[f'{name}_mb']:>9.1f} MB{found[f'{name}_files']:>8}")
    print(f"\nmemory of one idle session   {found['kb_each']:.1f} KB")
    print(f"opening them                 {found['open_seconds']:.1f} s, {found['open_cpu']:.1f} s of CPU")
    print(f"CPU while all are idle       {found['idle_cpu_percent']:.2f} %")
    print(f"letting them expire          {found['expire_seconds']:.1f} s, {found['expire_cpu']:.1f} s of CPU")
    print(
        f"another client meanwhile     {found['calls']} calls, p50 {found['call_ms_p50']:.1f} ms, "
        f"longest {found['call_ms_max']:.1f} ms"
    )
    print(f"\n{psutil.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")


def main() -> None:
    """Measure, print and keep."""
    options = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    options.add_argument("--sessions", type=int, default=10_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-") as name:
        support.CONSOLE = launcher(Path(name))
        os.environ["PYTHONPATH"] = str(Path.cwd())
        with Proxy(Path(name) / "home", {"tiny": tiny()}, max_sessions=chosen.sessions) as proxy:
            proxy.start()
            proxy.await_ready("tiny")
            found = asyncio.run(measure(proxy, chosen.sessions))
    show(found)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "sessions.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
