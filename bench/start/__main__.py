"""How soon is it there, and what does it cost to have it? `python -m bench.start [--quick]`.

Prints the wall time of cold starts, the time until all upstreams are ready, and the proxy's memory and CPU at rest
with 0, 10 and 100 stdio upstreams. Upstreams are as small as they can be, so what is measured is the proxy's share.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from tests.journeys.support import CONSOLE, Proxy, environment, tiny

MANY = 100
IDLE_SECONDS = 30.0


def timed(command: list[str], home: Path) -> float:
    """Seconds that a command takes from start to end."""
    started = time.perf_counter()
    subprocess.run(command, env=environment(home), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def to_health(home: Path) -> float:
    """Seconds from the start of `serve` to the first answer of /healthz."""
    with Proxy(home) as proxy:
        started = time.perf_counter()
        proxy.start()
        return time.perf_counter() - started


def cold_starts(scratch: Path, runs: int) -> None:
    """Print the median and the best of several cold starts each."""
    cases: list[tuple[str, Callable[[], float]]] = [
        ("python -c pass", lambda: timed([sys.executable, "-c", "pass"], scratch)),
        ("mcpproxy version", lambda: timed([str(CONSOLE), "version"], scratch)),
        ("mcpproxy --help", lambda: timed([str(CONSOLE), "--help"], scratch)),
        ("mcpproxy serve to /healthz", lambda: to_health(scratch)),
    ]
    print(f"{'cold start':<40} {'p50':>9} {'best':>9}")
    for name, case in cases:
        case()  # the first run reads from disk and writes byte code
        seconds = [case() for _ in range(runs)]
        print(f"{name:<40} {statistics.median(seconds) * 1000:6.0f} ms {min(seconds) * 1000:6.0f} ms")


def at_rest(home: Path, count: int, idle: float) -> None:
    """Print what the proxy needs for this many upstreams."""
    names = [f"server{number}" for number in range(count)]
    with Proxy(home, {name: tiny() for name in names}) as proxy:
        started = time.perf_counter()
        proxy.start()
        answering = time.perf_counter() - started
        proxy.await_ready(*names)
        ready = time.perf_counter() - started
        time.sleep(2)
        process = psutil.Process(proxy.process.pid)
        memory = process.memory_info().rss
        before = process.cpu_times()
        time.sleep(idle)
        after = process.cpu_times()
        spent = (after.user - before.user) + (after.system - before.system)
        threads, descriptors = process.num_threads(), process.num_fds()
    print(
        f"{count:>9} {answering:>8.2f} s {ready:>8.2f} s {memory / 2**20:>8.1f} MB {spent / idle * 100:>8.2f} %"
        f" {threads:>8} {descriptors:>6}"
    )


def main() -> None:
    """Measure everything, one after the other."""
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-") as name:
        scratch = Path(name)
        cold_starts(scratch, 3 if quick else 11)
        idle = 5.0 if quick else IDLE_SECONDS
        titles = ("upstreams", "/healthz", "all ready", "RSS", "idle CPU", "threads", "files")
        print("\n{:>9} {:>10} {:>10} {:>11} {:>10} {:>8} {:>6}".format(*titles))
        for count in (0, 10, MANY):
            at_rest(scratch / str(count), count, idle)
    print(f"\n{psutil.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
