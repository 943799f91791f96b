"""What does search cost? Build time, memory and latency at several sizes, each in a process of its own.

Nothing is kept between queries, so asking one again costs what it cost before.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SIZES = (50, 500, 1000, 10_000)
ROUNDS = 7
"""Times each query is asked. CPU is the best of them: what it takes when nobody on the machine interferes."""
CHILD = "import sys; from bench.search.speed import child; child(int(sys.argv[1]), sys.argv[2] == 'deep')"


def resident() -> float:
    """Memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def lateness(done: Callable[[], bool], least: float) -> list[float]:
    """How late, in ms, an event loop wakes from 1 ms naps until `done`, and at the least for some seconds."""
    late = []
    start = time.perf_counter()
    while not done() or time.perf_counter() - start < least:
        begin = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append((time.perf_counter() - begin) * 1e3 - 1)
    return sorted(late)


def print_lateness(size: int = 10_000) -> None:
    """Print how much building in the background delays an event loop."""
    from bench.search.ours import by_server
    from bench.search.sets import SHARED, load_set

    from mcpproxy.catalog.search.index import SearchIndex

    servers = by_server(load_set(SHARED / "livemcp_10k").documents[:size])
    index = SearchIndex()
    index.search("warm up")
    idle = asyncio.run(lateness(lambda: True, 2.0))
    start = time.perf_counter()
    for server, documents in servers.items():
        index.put(server, documents)
    busy = asyncio.run(lateness(lambda: index.settle(0), 0.5))
    took = time.perf_counter() - start
    print(f"\nlateness of an event loop while {size} tools are indexed beside it ({took:.1f} s), ms")
    for name, late in (("idle", idle), ("building", busy)):
        marks = ", ".join(f"p{p} {late[int(len(late) * p / 100)]:.2f}" for p in (50, 95, 99))
        print(f"  {name:10}{marks}, max {late[-1]:.2f}")
    index.close()


def child(size: int, deep: bool) -> None:
    """Measure one size and print the figures as JSON."""
    from bench.search.sets import SHARED, load_set

    from mcpproxy.catalog.search.document import Document

    found = load_set(SHARED / "livemcp_10k")
    documents = found.documents[:size]
    queries = [query["query"] for query in found.queries]
    del found
    before, start = resident(), time.perf_counter()
    from bench.search.ours import Ours

    from mcpproxy.catalog.search.minilm import load_minilm

    imported = time.perf_counter()
    ours = Ours(documents, load_minilm() if deep else None)
    built = time.perf_counter()
    for query in queries[:5]:
        ours.search(query, 15)
    times: list[float] = []
    work = [math.inf] * len(queries)
    for _ in range(ROUNDS):
        for place, query in enumerate(queries):
            begin, spent = time.perf_counter(), time.thread_time()
            ours.search(query, 15)
            times.append((time.perf_counter() - begin) * 1e3)
            work[place] = min(work[place], (time.thread_time() - spent) * 1e3)
    times.sort()
    work.sort()
    change = [Document(f"one:{n}", "one", f"tool_{n}", description="Does one thing") for n in range(20)]
    begin = time.perf_counter()
    ours.index.put("one", change)
    ours.index.settle()
    changed = (time.perf_counter() - begin) * 1e3
    ours.index.close()
    print(
        json.dumps(
            {
                "import": imported - start,
                "build": built - imported,
                "change": changed,
                "memory": resident() - before,
                "p50": times[len(times) // 2],
                "p99": times[int(len(times) * 0.99)],
                "cpu": work[len(work) // 2],
                "cpu99": work[int(len(work) * 0.99)],
            }
        )
    )


def measure(size: int, *, deep: bool) -> dict[str, float]:
    """The figures of one size, from a fresh process."""
    command = [sys.executable, "-c", CHILD, str(size), "deep" if deep else "default"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def print_speed(*, deep: bool) -> None:
    """Print one line per size."""
    heads = {
        "tools": 8,
        "import s": 10,
        "build s": 10,
        "change ms": 11,
        "+MB": 8,
        "p50 ms": 9,
        "p99 ms": 9,
        "CPU p50": 10,
        "CPU p99": 9,
    }
    print("\n" + "".join(f"{head:>{width}}" for head, width in heads.items()))
    for size in SIZES:
        got = measure(size, deep=deep)
        print(
            f"{size:>8}{got['import']:>10.2f}{got['build']:>10.2f}{got['change']:>11.1f}"
            f"{got['memory']:>8.0f}{got['p50']:>9.2f}{got['p99']:>9.2f}{got['cpu']:>10.2f}{got['cpu99']:>9.2f}",
            flush=True,
        )
