"""How quickly does the command line answer? `python -m bench.cli [--quick]`.

Prints wall time and CPU of cold starts beside `python -c pass`, in one run: the quick answers, help, and common
commands with a running daemon. CPU is what a busy machine changes least. Ends with 1 where a target is missed.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.journeys.support import CONSOLE, Proxy, environment

TIMES_PYTHON = 5.0
HELP_SECONDS = 0.35


class Cost(NamedTuple):
    """What one start costs: medians, and the best, in seconds."""

    wall: float
    best: float
    cpu: float


class Case(NamedTuple):
    """One command line."""

    name: str
    command: list[str]
    quick: bool = False
    help: bool = False


def measured(command: list[str], env: dict[str, str], runs: int) -> Cost:
    """Run it so often, and give what it cost."""
    walls, cpus = [], []
    for _ in range(runs):
        before, started = _used(), time.perf_counter()
        subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        walls.append(time.perf_counter() - started)
        cpus.append(_used() - before)
    return Cost(statistics.median(walls), min(walls), statistics.median(cpus))


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cases() -> list[Case]:
    """What is measured."""
    mcpproxy = str(CONSOLE)
    return [
        Case("mcpproxy version", [mcpproxy, "version"], quick=True),
        Case("mcpproxy completion bash", [mcpproxy, "completion", "bash"], quick=True),
        Case("<TAB> after a command", [mcpproxy, "__complete", "bash", "mcpproxy activity li"], quick=True),
        Case("<TAB> after a tool", [mcpproxy, "__complete", "bash", "mcpproxy tools show demo:"], quick=True),
        Case("mcpproxy --help", [mcpproxy, "--help"], help=True),
        Case("mcpproxy call tool-read --help", [mcpproxy, "call", "tool-read", "--help"], help=True),
        Case("mcpproxy config path", [mcpproxy, "config", "path"]),
        Case("mcpproxy status", [mcpproxy, "status"]),
        Case("mcpproxy tools list", [mcpproxy, "tools", "list"]),
        Case("mcpproxy activity list", [mcpproxy, "activity", "list"]),
        Case("mcpproxy call tool-read", [mcpproxy, "call", "tool-read", "demo:list_notes", "limit=1"]),
    ]


def main() -> int:
    """Measure, print, and judge."""
    runs = 5 if "--quick" in sys.argv else 25
    missed = []
    with tempfile.TemporaryDirectory() as scratch:
        demo = {"command": sys.executable, "args": ["-m", "mcpproxy.demo"]}
        with Proxy(Path(scratch) / "home", {"demo": demo}) as proxy:
            proxy.start()
            proxy.await_ready("demo")
            env = environment(proxy.home) | {"MCPPROXY_CONFIG": str(proxy.config), "MCPPROXY_DATA": str(proxy.data)}
            base = measured([sys.executable, "-c", "pass"], env, runs)
            print(f"{'':<32}{'wall p50':>10}{'best':>10}{'CPU p50':>10}{'of pass':>9}")
            print(_row("python -c pass", base, base))
            for case in cases():
                cost = measured(case.command, env, runs)
                print(_row(case.name, cost, base))
                if case.quick and cost.best > TIMES_PYTHON * base.best:
                    missed.append(f"{case.name}: over {TIMES_PYTHON:g} times python -c pass")
                if case.help and cost.best > HELP_SECONDS:
                    missed.append(f"{case.name}: over {HELP_SECONDS:g} s")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


def _row(name: str, cost: Cost, base: Cost) -> str:
    times = " ".join(f"{seconds * 1000:7.1f}ms" for seconds in cost)
    return f"{name:<32} {times} {cost.best / base.best:7.1f}x"


if __name__ == "__main__":
    sys.exit(main())
