"""What does a changed list cost? Run by the proxy's own Python, as `swap.py COUNT`: prints one line of JSON.

The real catalogue with its guard, its database and its search index, in one process: so many tools are known, and
then one server of 20 tools lists them anew, again and again, with one word changed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.scale.many import tools
from mcpproxy.catalog.catalog import Catalog
from mcpproxy.catalog.finder import Finder
from mcpproxy.catalog.guard import Guard
from mcpproxy.catalog.listing import Listing, read_tools
from mcpproxy.catalog.store import ListingStore
from mcpproxy.catalog.trust_store import TrustStore
from mcpproxy.config.models import Server
from mcpproxy.storage.engine import open_storage

SERVERS = 10
CHANGED = 20
TIMES = 15


def listing(server: str, count: int, first: int, word: str = "") -> Listing:
    """What a server lists."""
    found, _ = read_tools(server, [json.dumps(tool).encode() for tool in tools(count, first, word)])
    return Listing(server=server, identity=server, tools=found)


async def measure(count: int, scratch: Path) -> dict[str, float]:
    """Let every server list its tools, then one of them again and again."""
    storage = open_storage("sqlite", scratch)
    guard = Guard(TrustStore(storage), lambda name: Server(name=name, command="true", trust="scan"))
    catalog, finder = Catalog(ListingStore(storage), guard=guard), Finder(scratch)
    catalog.watch(finder.listed)
    began = time.perf_counter()
    each = max(count // SERVERS, 1)
    for number in range(SERVERS):
        await catalog.put(listing(f"server{number}", each, number * each))
    await _found(finder, "issue")
    whole = time.perf_counter() - began
    stalls = _Stalls()
    watching = asyncio.create_task(stalls.watch())
    puts, indexed, swaps = [], [], []
    for turn in range(TIMES):
        changed = listing("changing", CHANGED, count + CHANGED, f"zebra{turn}")
        began = time.perf_counter()
        await catalog.put(changed)
        puts.append(time.perf_counter() - began)
        swaps.append(stalls.longest())
        await _found(finder, f"zebra{turn}")
        indexed.append(time.perf_counter() - began)
    watching.cancel()
    finder.close()
    storage.close()
    return {
        "all lists taken in, s": whole,
        "one list changed, ms": statistics.median(puts) * 1e3,
        "longest stall of the loop, ms": statistics.median(swaps) * 1e3,
        "until a search finds it, ms": statistics.median(indexed) * 1e3,
    }


async def _found(finder: Finder, word: str) -> None:
    while not (await finder.search(word, 5, lambda tool: True)).best:
        await asyncio.sleep(0)


class _Stalls:
    """How long the event loop did not get to run anything else."""

    def __init__(self) -> None:
        self._longest = 0.0

    async def watch(self) -> None:
        """Look as often as the loop lets us."""
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            self._longest, last = max(self._longest, now - last), now

    def longest(self) -> float:
        """The longest since this was last asked."""
        found, self._longest = self._longest, 0.0
        return found


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-") as scratch:
        print(json.dumps(asyncio.run(measure(int(sys.argv[1]), Path(scratch)))))


if __name__ == "__main__":
    main()
