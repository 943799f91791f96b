"""What is measured at each size? Tools, upstreams and records, each with the real proxy in a process of its own."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.activity.fill import fill
from bench.calls.peers import CONSOLE, ROOT, install_mcpproxy
from bench.calls.run import Loader
from bench.scale.proxy import Proxy, proxy
from mcpproxy.storage.engine import FILE_NAME, open_storage

HERE = Path(__file__).parent
UPSTREAM = ROOT / "bench" / "calls" / "upstream.py"
SERVERS = 10
QUERIES = ("create an issue", "find invoices of a customer")
CALL = {"name": "call_tool_read", "arguments": {"name": "bench:echo", "args": {}}}
LISTS = {
    "newest records, ms": "/activity?limit=50",
    "records of a server and status, ms": "/activity?limit=50&server=server-3&status=error",
    "records by words, ms": "/activity?limit=50&q=permission",
    "summary of 24 h, ms": "/activity/summary?period=24h",
}


def upstream(*more: str) -> dict[str, Any]:
    """An entry for the smallest upstream."""
    return {"command": sys.executable, "args": ["-S", str(UPSTREAM), "200", *more]}


def tools(count: int, seconds: float) -> dict[str, float]:
    """A catalogue of so many tools, over ten servers."""
    install_mcpproxy()
    command = [str(CONSOLE.with_name("python")), "-m", "bench.scale.swap", str(count)]
    figures: dict[str, float] = json.loads(subprocess.check_output(command, cwd=ROOT))
    each = max(count // SERVERS, 1)
    servers = {
        f"server{number}": {
            "command": sys.executable,
            "args": ["-S", str(HERE / "many.py"), str(each), str(number * each)],
        }
        for number in range(SERVERS)
    }
    with proxy(servers) as running:
        figures["all servers ready, s"] = running.ready_after
        figures["search knows all after, s"] = running.ready_after + _until_indexed(running)
        params: dict[str, Any] = {"cursor": None}
        figures["tools/list p50, ms"] = _latency(running, params, seconds, "tools/list", "call_tool_read")["p50_ms"]
        for query, name in zip(QUERIES, ("retrieve_tools", "retrieve_tools, rare"), strict=True):
            params = {"name": "retrieve_tools", "arguments": {"query": query}}
            found = _latency(running, params, seconds, sign="usage_instructions")
            figures |= {f"{name} p50, ms": found["p50_ms"], f"{name} p99, ms": found["p99_ms"]}
        figures["memory, MB"] = running.tree.own().rss / 1e6
        figures["GET /tools, ms"] = _milliseconds(partial(running.get, "/tools"), 10)
    return figures


def upstreams(count: int, seconds: float) -> dict[str, float]:
    """So many upstreams that nobody calls."""
    with proxy({f"server{number}": upstream() for number in range(count)}) as running:
        figures = {"all servers ready, s": running.ready_after, "CPU until then, s": running.tree.own().cpu}
        time.sleep(3)  # the index is made, the start is over
        before = running.tree.own()
        time.sleep(seconds)
        after = running.tree.own()
        figures["memory, MB"] = after.rss / 1e6
        figures["CPU at rest, %"] = (after.cpu - before.cpu) / seconds * 100
        figures["descriptors"] = float(after.files)
    return figures


def records(count: int, seconds: float) -> dict[str, float]:
    """A log of so many records."""
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-", ignore_cleanup_errors=True) as folder:
        data = Path(folder) / "data"
        storage = open_storage("sqlite", data)
        asyncio.run(fill(storage, data, count))
        storage.close()
        activity = {"max_records": count * 10, "max_size_mb": 100_000, "retention_days": 1000}
        with proxy({"bench": upstream()}, data, activity=activity) as running:
            figures = {"database, MB": (data / FILE_NAME).stat().st_size / 1e6, "ready, s": running.ready_after}
            for callers in (1, 64):
                found = _latency(running, CALL, seconds, callers=callers)
                figures[f"a call at {callers}, p50 ms"] = found["p50_ms"]
                figures[f"a call at {callers}, p99 ms"] = found["p99_ms"]
            figures |= {name: _milliseconds(partial(running.get, path), 20) for name, path in LISTS.items()}
            figures["memory, MB"] = running.tree.own().rss / 1e6
    return figures


def _until_indexed(running: Proxy) -> float:
    """A search waits up to two seconds for tools that were listed just before it; afterwards it takes milliseconds."""
    began = time.perf_counter()
    params = {"name": "retrieve_tools", "arguments": {"query": QUERIES[0]}}
    while _latency(running, params, 0.1, sign="usage_instructions")["p50_ms"] > 1000:
        pass
    return time.perf_counter() - began


def _latency(
    running: Proxy, params: Any, seconds: float, method: str = "tools/call", sign: str = "xxxxxxxx", callers: int = 1
) -> dict[str, float]:
    with Loader(running.target(params, method, sign)) as load:
        load.prepare(callers)
        return load.run(seconds)


def _milliseconds(act: Callable[[], object], times: int) -> float:
    """The median of several runs."""
    act()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        found.append((time.perf_counter() - began) * 1e3)
    return statistics.median(found)
