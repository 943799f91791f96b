"""`python -m bench.faults`: how long calls to four good upstreams take, without and with each fault of a fifth.

One proxy, and calls to the good ones at a steady pace all the time. Each fault has its turn, again and again in rounds:
some seconds of calm, then as long with an agent that brings the fault about four times a second, or as often as it
can. Only the ratio of the two means something; it should stay below 1.5. "CPU ms" is what one time of the fault costs
the proxy, and "longest" the longest that everything else has to wait for it: these two are the same on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
from tests.faults.upstream_house import GOOD, Agent, Upstreams, agents, bring_about, recovered, serving
from tests.faults.upstream_table import FAULTS, Fault
from tests.journeys.support import Proxy

from bench.faults.stalls import stalls

LOAD = Path(__file__).with_name("load.py")
RESULTS = Path(__file__).parents[1] / "results"
TARGET = 1.5
EVERY = 0.25
SETTLE = 0.5
"""Seconds between two measurements, in which what is left of the first one ends."""


class Window(NamedTuple):
    """Some seconds with or without a fault."""

    fault: Fault
    faulty: bool
    begin: float
    end: float
    times: int
    """How often the fault was brought about."""


def main() -> None:
    """Measure, print the table and keep it."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of faults, comma-separated")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS if any(part in fault.id for part in options.only.split(","))]
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-") as home, serving(Path(home)) as (proxy, upstreams):
        samples: list[tuple[float, float]] = []
        with loaded(proxy, samples):
            windows = asyncio.run(measure(chosen, proxy, upstreams, options.seconds, options.rounds))
    rows = [row(fault, [window for window in windows if window.fault is fault], samples) for fault in chosen]
    turns = asyncio.run(stalls(chosen))
    for fault, found in zip(chosen, rows, strict=True):
        found["longest_turn_ms"], found["cpu_ms"] = turns[fault.id]
    show(rows)
    RESULTS.mkdir(exist_ok=True)
    settings = {"seconds": options.seconds, "rounds": options.rounds, "cores": psutil.cpu_count()}
    (RESULTS / "faults.json").write_text(json.dumps({**settings, "rows": rows}, indent=1))


@contextlib.contextmanager
def loaded(proxy: Proxy, samples: list[tuple[float, float]]) -> Iterator[None]:
    """Calls to the good ones all the while; how long each took is in `samples` afterwards."""
    with tempfile.TemporaryFile("w+") as out:
        tools = [f"{server}:echo" for server in GOOD]
        process = subprocess.Popen([sys.executable, LOAD, proxy.url, *tools], stdin=subprocess.PIPE, stdout=out)
        try:
            time.sleep(1)  # the first calls of all are not what is measured
            yield
        finally:
            process.communicate()
        if process.returncode != 0:
            raise SystemExit("the calls to the good upstreams went wrong")
        out.seek(0)
        samples += [(float(when), float(took)) for when, took in map(str.split, out)]


async def measure(chosen: list[Fault], proxy: Proxy, upstreams: Upstreams, seconds: float, rounds: int) -> list[Window]:
    """Calm and fault in turns, for every fault, round after round."""
    windows: list[Window] = []
    async with agents(proxy.url, 1) as (caller,):
        for _ in range(rounds):
            for fault in chosen:
                for faulty in (False, True):
                    await asyncio.sleep(SETTLE)
                    begin = time.monotonic()
                    end = begin + seconds
                    times = await suffer(fault, caller, upstreams, proxy.process.pid, end) if faulty else 0
                    await asyncio.sleep(end - time.monotonic())
                    windows.append(Window(fault, faulty, begin, time.monotonic(), times))
                await recovered(caller, fault.server)
                caller.told.clear()
    return windows


async def suffer(fault: Fault, caller: Agent, upstreams: Upstreams, proxy: int, until: float) -> int:
    """Bring a fault about until then; returns how often."""
    times = 0
    while (began := time.monotonic()) < until:
        await bring_about(fault, caller, upstreams, proxy)
        times += 1
        if fault.act in ("kill", "start"):
            await recovered(caller, fault.server)
        await asyncio.sleep(began + EVERY - time.monotonic())
    return times


def row(fault: Fault, windows: list[Window], samples: list[tuple[float, float]]) -> dict[str, float | str]:
    """What all windows of one fault come to: the median of the rounds, since a busy machine spoils some of them."""
    found: dict[str, float | str] = {"fault": fault.name, "transport": fault.transport}
    for name, faulty in (("calm", False), ("fault", True)):
        chosen = [window for window in windows if window.faulty is faulty]
        took = [sorted(took for when, took in samples if window.begin <= when < window.end) for window in chosen]
        found[f"{name}_calls"] = sum(map(len, took))
        found[f"{name}_p50_ms"] = statistics.median(at(each, 0.5) for each in took)
        found[f"{name}_p99_ms"] = statistics.median(at(each, 0.99) for each in took)
    found["times"] = sum(window.times for window in windows)
    for part in ("p50", "p99"):
        found[f"{part}_ratio"] = float(found[f"fault_{part}_ms"]) / float(found[f"calm_{part}_ms"])
    return found


def at(took: list[float], part: float) -> float:
    """The time within which this part of the calls was answered, in ms."""
    return took[int(len(took) * part)] * 1000


def show(rows: list[dict[str, float | str]]) -> None:
    """Print the table."""
    pair = f"{'with':>8}{'ratio':>7}"
    print(f"{'':48}{'times':>6}{'CPU ms':>8}{'longest':>9}{'p50 ms':>9}{pair}{'p99 ms':>9}{pair}")
    for found in rows:
        name = f"{found['transport']:6}{found['fault']}"
        figures = (found["calm_p50_ms"], found["fault_p50_ms"], found["p50_ratio"])
        tail = (found["calm_p99_ms"], found["fault_p99_ms"], found["p99_ratio"])
        shown = "".join(f"{a:>9.2f}{b:>8.2f}{c:>7.2f}" for a, b, c in (figures, tail))
        over = "  !" if float(found["p99_ratio"]) > TARGET else ""
        print(f"{name:48}{found['times']:>6}{found['cpu_ms']:>8.1f}{found['longest_turn_ms']:>9.1f}{shown}{over}")
    within = sum(float(found["p99_ratio"]) <= TARGET for found in rows)
    print(f"{within} of {len(rows)} faults leave the p99 of the others within {TARGET} times")


if __name__ == "__main__":
    main()
