"""`python -m bench.calls [--quick]`: the same load on every gateway, interleaved in one run.

Only the ratios mean something: they compare what ran within seconds of each other on the same machine.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.calls.peers import GATEWAYS, PEERS, ROOT, Gateway
from bench.calls.plot import draw
from bench.calls.publish import calls, front_page, publish
from bench.calls.report import Results, find, tables, verdicts
from bench.calls.run import Failed, Impossible, Loader, Row, Scenario, Target, cell, direct, serving

RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "performance.png"
WARM_CALLERS, WARM_SECONDS = 16, 1.5
QUICK = (Scenario("http", "stdio", 200, (1, 64)),)
_ALL, _BOTH = (1, 16, 64, 256), (False, True)
FULL = (
    Scenario("http", "stdio", 200, _ALL, _BOTH),
    Scenario("http", "stdio", 10_000, _ALL, _BOTH),
    Scenario("http", "stdio", 1_000_000, _ALL),
    Scenario("http", "stdio", 1_000_000, (1, 64), (True,)),
    Scenario("http", "http", 200, (1, 64)),
    Scenario("stdio", "stdio", 200, (1, 64)),
    Scenario("stdio", "http", 200, (1, 64)),
)


class Bench:
    """One run over all targets."""

    def __init__(self, gateways: list[Gateway], rounds: int, seconds: float) -> None:
        self._gateways = gateways
        self._rounds = rounds
        self._seconds = seconds
        self.results = Results()
        self.failed: list[str] = []

    def run(self, scenario: Scenario) -> None:
        """Measure every target in every cell of a scenario, round by round."""
        with contextlib.ExitStack() as stack:
            targets = [(target, self._load(stack, target)) for target in self._targets(stack, scenario)]
            for target, load in targets:
                self._warm_up(target, load)
            for callers, progress in itertools.product(scenario.callers, scenario.progress):
                for round_ in range(self._rounds):
                    # Who comes first changes: being next to a heavy neighbour should hit everybody once.
                    targets = [*targets[1:], targets[0]]
                    for place, (target, load) in enumerate(targets):
                        try:
                            row = cell(target, load, callers, progress, self._seconds)
                        except (Failed, OSError, ValueError, IndexError) as error:
                            text = f"{target.name}, {scenario.size} B, {callers} callers, round {round_ + 1}: {error}"
                            self._note(text)
                            targets[place] = target, self._load(stack, target)
                        else:
                            self.results.add(scenario, callers, progress, target.name, round_, row)

    def _warm_up(self, target: Target, load: Loader) -> None:
        """Node's compiler takes a while until it is at its best."""
        try:
            load.prepare(WARM_CALLERS)
            load.run(WARM_SECONDS)
        except (Failed, OSError) as error:
            self._note(f"{target.name}: {error}")

    def _targets(self, stack: contextlib.ExitStack, scenario: Scenario) -> list[Target]:
        upstream, port = stack.enter_context(direct(scenario))
        targets = [upstream]
        for gateway in self._gateways:
            try:
                targets.append(stack.enter_context(serving(gateway, scenario, port)))
            except Impossible:
                continue
            except (Failed, OSError, subprocess.SubprocessError) as error:
                self._note(f"{gateway.name}, {scenario.front} to {scenario.upstream}: {error}")
        return targets

    def _load(self, stack: contextlib.ExitStack, target: Target) -> Loader:
        return stack.enter_context(Loader(target))

    def _note(self, text: str) -> None:
        self.failed.append(text)
        print(text, file=sys.stderr, flush=True)


def installed(chosen: list[Gateway]) -> tuple[list[Gateway], dict[str, str], list[str]]:
    """Those that can be had, their versions, and why the others cannot."""
    ready, versions, missing = [], {}, []
    for gateway in chosen:
        try:
            gateway.install()
            versions[gateway.name] = gateway.version()
            ready.append(gateway)
        except (OSError, subprocess.SubprocessError) as error:
            missing.append(f"{gateway.name} could not be installed: {error}")
    return ready, versions, missing


def machine() -> Row:
    """Where and when this was measured."""
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cores": os.cpu_count(),
        "cpu": model[0].partition(": ")[2] if model else platform.machine(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "at": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }


def panels(rows: list[Row]) -> list[dict[str, Any]]:
    """The picture for the front page: calls a second, latency, and large results through each gateway."""
    asked = (
        ("calls/s, 64 callers, 200 B", {"callers": 64}, "per_second", "{:,.0f}"),
        ("p50 in ms, one caller, 200 B (less is better)", {"callers": 1}, "p50_ms", "{:.2f}"),
        ("calls/s, 16 callers, 1 MB", {"callers": 16, "size": 1_000_000}, "per_second", "{:,.0f}"),
    )
    found = []
    names = ["mcpproxy", *(peer.name for peer in PEERS)]
    for title, where, key, form in asked:
        values = {name: row[key] for name in names if (row := find(rows, name, **where)) is not None}
        if len(values) > 1:
            ordered = dict(sorted(values.items(), key=lambda item: item[1], reverse=key == "per_second"))
            found.append({"title": title, "values": ordered, "format": form})
    return found


def main() -> None:
    """Run it, print the tables, write the results and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 bytes, 1 and 64 callers, stdio upstream")
    parser.add_argument("--only", help="names of gateways, comma-separated")
    parser.add_argument("--sizes", help="of results in bytes, comma-separated")
    parser.add_argument("--callers", help="comma-separated")
    parser.add_argument("--front", choices=("http", "stdio"))
    parser.add_argument("--upstream", choices=("http", "stdio"))
    parser.add_argument("--progress", choices=("no", "yes", "both"))
    parser.add_argument("--seconds", type=float, default=1.0, help="of each cell in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--publish", action="store_true", help="put the figures into docs/performance.md, too")
    options = parser.parse_args()
    if options.publish and (options.quick or options.only or options.sizes or options.callers or options.front):
        parser.error("only a whole run is for publication")
    began = time.monotonic()
    chosen = [gateway for gateway in GATEWAYS if not options.only or gateway.name in options.only.split(",")]
    ready, versions, missing = installed(chosen)
    bench = Bench(ready, options.rounds, options.seconds)
    found = {"machine": machine(), "versions": versions, "rounds": options.rounds, "seconds": options.seconds}
    for scenario in _scenarios(options):
        bench.run(scenario)
    rows = bench.results.rows()
    met = verdicts(rows, [peer.name for peer in PEERS])
    print(tables(rows))
    print("\n" + "\n".join(_line(verdict) for verdict in met))
    for text in (*missing, *dict.fromkeys(bench.failed)):
        print(f"not measured: {text}")
    found |= {"targets": met, "missing": [*missing, *bench.failed], "took_s": time.monotonic() - began, "rows": rows}
    RESULTS.mkdir(exist_ok=True)
    name = "calls-quick" if options.quick else "calls"
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1))
    drawn = draw(panels(rows), PICTURE if options.publish else RESULTS / f"{name}.png")
    if options.publish:
        publish(PAGE, "calls", calls(found))
        publish(ROOT / "README.md", "performance", front_page(found))
    print(f"\n{drawn}\n{RESULTS / name}.json, {found['took_s']:.0f} s; {found['machine']}")


def _scenarios(options: argparse.Namespace) -> list[Scenario]:
    found = []
    for scenario in QUICK if options.quick else FULL:
        if options.front not in (None, scenario.front) or options.upstream not in (None, scenario.upstream):
            continue
        if options.sizes and str(scenario.size) not in options.sizes.split(","):
            continue
        callers = tuple(int(n) for n in options.callers.split(",")) if options.callers else scenario.callers
        asked = {"no": (False,), "yes": (True,), "both": (False, True), None: scenario.progress}[options.progress]
        found.append(Scenario(scenario.front, scenario.upstream, scenario.size, callers, asked))
    return found


def _line(verdict: Row) -> str:
    sign, limit = ("≥" if verdict["at_least"] else "≤"), verdict["limit"]
    return (
        f"{'met   ' if verdict['met'] else 'MISSED'} {verdict['target']}: {verdict['value']:.2f} ({sign} {limit:.2f})"
    )


if __name__ == "__main__":
    main()
