"""How soon is it there, and what does it cost to have it? `python -m bench.start [--quick]`.

Prints the wall time of cold starts, the time until all upstreams are ready, and the proxy's memory and CPU at rest
with 0, 10 and 100 stdio upstreams. Upstreams are as small as they can be, so what is measured is the proxy's share.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
from tests.journeys.support import CONSOLE, Proxy, environment, tiny

MANY = 100
IDLE_SECONDS = 30.0


class Cost(NamedTuple):
    """What one start cost."""

    wall: float
    cpu: float


def timed(command: list[str], home: Path) -> Cost:
    """What a command costs from start to end."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(command, env=environment(home), stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - started, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(wall, used)


def to_health(home: Path) -> Cost:
    """What it costs from the start of `serve` to the first answer of /healthz."""
    with Proxy(home) as proxy:
        started = time.perf_counter()
        proxy.start()
        wall = time.perf_counter() - started
        return Cost(wall, cpu_of(psutil.Process(proxy.process.pid)))


def cpu_of(process: psutil.Process) -> float:
    """Seconds of CPU that a process has used so far."""
    times = process.cpu_times()
    return times.user + times.system


def cold_starts(scratch: Path, runs: int) -> None:
    """Print the median and the best of several cold starts each. CPU is what a busy machine changes least."""
    cases: list[tuple[str, Callable[[], Cost]]] = [
        ("python -c pass", lambda: timed([sys.executable, "-c", "pass"], scratch)),
        ("mcpproxy version", lambda: timed([str(CONSOLE), "version"], scratch)),
        ("mcpproxy --help", lambda: timed([str(CONSOLE), "--help"], scratch)),
        ("mcpproxy serve to /healthz", lambda: to_health(scratch)),
    ]
    print(f"{'cold start':<30} {'p50':>9} {'best':>9} {'best CPU':>9}")
    for name, case in cases:
        case()  # the first run reads from disk and writes byte code
        costs = [case() for _ in range(runs)]
        walls = [cost.wall for cost in costs]
        figures = (statistics.median(walls), min(walls), min(cost.cpu for cost in costs))
        print(f"{name:<30}", *(f"{seconds * 1000:6.0f} ms" for seconds in figures))


def at_rest(home: Path, count: int, idle: float) -> None:
    """Print what the proxy needs for this many upstreams."""
    names = [f"server{number}" for number in range(count)]
    with Proxy(home, {name: tiny() for name in names}) as proxy:
        started = time.perf_counter()
        proxy.start()
        answering = time.perf_counter() - started
        proxy.await_ready(*names)
        ready = time.perf_counter() - started
        process = psutil.Process(proxy.process.pid)
        starting = cpu_of(process)
        time.sleep(2)
        memory = process.memory_info().rss
        before = cpu_of(process)
        time.sleep(idle)
        spent = cpu_of(process) - before
        threads, descriptors = process.num_threads(), process.num_fds()
    print(
        f"{count:>9} {answering:>8.2f} s {ready:>8.2f} s {starting:>8.2f} s {memory / 2**20:>8.1f} MB"
        f" {spent / idle * 100:>8.2f} % {threads:>8} {descriptors:>6}"
    )


def main() -> None:
    """Measure everything, one after the other."""
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-") as name:
        scratch = Path(name)
        cold_starts(scratch, 3 if quick else 11)
        idle = 5.0 if quick else IDLE_SECONDS
        titles = ("upstreams", "/healthz", "all ready", "CPU so far", "RSS", "idle CPU", "threads", "files")
        print("\n{:>9} {:>10} {:>10} {:>10} {:>11} {:>10} {:>8} {:>6}".format(*titles))
        for count in (0, 10, MANY):
            at_rest(scratch / str(count), count, idle)
    print(f"\n{psutil.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
