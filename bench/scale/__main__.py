"""`python -m bench.scale [--quick] [--only tools,upstreams,records]`: what grows, and how."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

from bench.calls.__main__ import PAGE, RESULTS, machine
from bench.calls.plot import draw
from bench.calls.publish import publish, where_and_when
from bench.scale.curve import Curve
from bench.scale.measure import records, tools, upstreams

Measure = Callable[[int, float], dict[str, float]]
FULL: dict[str, tuple[Measure, tuple[int, ...], float]] = {
    "tools": (tools, (10, 1000, 10_000), 3.0),
    "upstreams": (upstreams, (1, 10, 100), 30.0),
    "records": (records, (10_000, 100_000, 1_000_000), 3.0),
}
QUICK: dict[str, tuple[Measure, tuple[int, ...], float]] = {
    "tools": (tools, (10, 1000), 1.0),
    "upstreams": (upstreams, (1, 10), 5.0),
    "records": (records, (1000, 10_000), 1.0),
}
MOST_IDLE_CPU, MOST_MEMORY_MB = 1.0, 120.0


def main() -> None:
    """Measure one size after the other, print the curves, write the results and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only, a minute or two")
    parser.add_argument("--only", default=",".join(FULL))
    parser.add_argument("--publish", action="store_true", help="put the figures into docs/performance.md, too")
    options = parser.parse_args()
    if options.publish and (options.quick or options.only != ",".join(FULL)):
        parser.error("only a whole run is for publication")
    where, began = machine(), time.monotonic()
    curves = []
    for name in options.only.split(","):
        measure, sizes, seconds = (QUICK if options.quick else FULL)[name]
        curve = Curve(name)
        for size in sizes:
            curve.add(size, measure(size, seconds))
        print(curve.table(), flush=True)
        curves.append(curve)
    met = [line for curve in curves if curve.of == "upstreams" for line in _targets(curve)]
    print("\n" + "\n".join(met))
    found = {"machine": where, "took_s": time.monotonic() - began, "targets": met}
    found |= {curve.of: {"sizes": curve.sizes, "points": curve.points} for curve in curves}
    RESULTS.mkdir(exist_ok=True)
    name = "scale-quick" if options.quick else "scale"
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1))
    drawn = draw([panel for curve in curves for panel in curve.panels()], RESULTS / f"{name}.png")
    print(f"\n{drawn}\n{RESULTS / name}.json, {found['took_s']:.0f} s; {where}")
    if options.publish:
        publish(PAGE, "scale", "\n\n".join((where_and_when(where), *(curve.markdown() for curve in curves))))


def _targets(curve: Curve) -> list[str]:
    """What is to hold with many upstreams at rest."""
    lines = []
    for size, name, limit in ((100, "CPU at rest, %", MOST_IDLE_CPU), (10, "memory, MB", MOST_MEMORY_MB)):
        if size in curve.sizes:
            value = curve.points[name][curve.sizes.index(size)]
            lines.append(f"{'met   ' if value < limit else 'MISSED'} {name} with {size}: {value:.2f} (< {limit:g})")
    return lines


if __name__ == "__main__":
    main()
