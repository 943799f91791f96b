"""`python -m bench.soak --minutes 30`: the proxy at 80 % of its maximum, and whether anything grows.

Finds the maximum first, then calls at a steady rate. Every ten seconds: memory, descriptors, the size of the database
and latency. The start is left out of the verdict: caches fill and the log reaches its steady state meanwhile.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from bench.calls.__main__ import PAGE, RESULTS, machine
from bench.calls.plot import draw
from bench.calls.publish import publish, where_and_when
from bench.calls.run import Loader
from bench.scale.measure import CALL, upstream
from bench.scale.proxy import Proxy, proxy

PICTURE = PAGE.parent / "images" / "soak.png"
CALLERS = 64
SHARE = 0.8
EVERY = 10.0
FILL = 40.0
Sample = dict[str, float]

MOST_GROWTH = {"memory_mb": 0.05, "database_mb": 0.05, "descriptors": 0.05, "p50_ms": 0.25, "p99_ms": 0.5}
"""By how much of its mean a figure may rise over the last two thirds and still be called flat."""


def maximum(load: Loader) -> float:
    """Calls a second at full speed: the median of five short runs, so that one lucky moment does not set the pace.

    Before these the log is filled, so that it is pruned meanwhile as it will be later.
    """
    load.prepare(CALLERS)
    load.run(FILL)
    found = []
    for _ in range(5):
        load.prepare(CALLERS)
        found.append(float(load.run(3.0)["per_second"]))
    return sorted(found)[2]


def sample(running: Proxy, row: dict[str, Any], started: float) -> Sample:
    """What can be seen from outside, at the end of one stretch."""
    cost = running.tree.own()
    files = [path for path in running.data.rglob("*") if path.is_file()]
    return {
        "minute": (time.monotonic() - started) / 60,
        "memory_mb": cost.rss / 1e6,
        "descriptors": float(cost.files),
        "database_mb": sum(path.stat().st_size for path in files if path.name.startswith("mcpproxy.db")) / 1e6,
        "data_mb": sum(path.stat().st_size for path in files) / 1e6,
        "cpu_s": cost.cpu,
        "calls": row["calls"],
        "per_second": row["per_second"],
        "p50_ms": row["p50_ms"],
        "p99_ms": row["p99_ms"],
    }


def slope(samples: list[Sample], key: str) -> float:
    """By how much a figure rises over the last two thirds, by the line that fits best."""
    kept = samples[len(samples) // 3 :]
    if len(kept) < 2:
        return 0.0
    times, values = [one["minute"] for one in kept], [one[key] for one in kept]
    middle, mean = sum(times) / len(times), sum(values) / len(values)
    spread = sum((at - middle) ** 2 for at in times)
    rise = sum((at - middle) * (value - mean) for at, value in zip(times, values, strict=True)) / spread
    return rise * (times[-1] - times[0])


def verdicts(samples: list[Sample]) -> list[dict[str, Any]]:
    """What is flat and what is not."""
    kept = samples[len(samples) // 3 :]
    found = []
    for key, most in MOST_GROWTH.items():
        mean = sum(one[key] for one in kept) / len(kept)
        rise = slope(samples, key)
        found.append({"figure": key, "mean": mean, "rise": rise, "share": rise / mean, "flat": rise / mean <= most})
    return found


def panels(samples: list[Sample]) -> list[dict[str, Any]]:
    """One picture for each figure over time."""
    titles = {
        "memory_mb": "memory, MB",
        "descriptors": "open descriptors",
        "database_mb": "database, MB",
        "per_second": "calls/s",
        "p50_ms": "p50, ms",
        "p99_ms": "p99, ms",
    }
    minutes = [one["minute"] for one in samples]
    return [
        {"title": title, "x": minutes, "series": {title: [one[key] for one in samples]}, "xlabel": "minutes"}
        for key, title in titles.items()
    ]


def main() -> None:
    """Run it, print what is flat, write the samples and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--records", type=int, default=100_000, help="how many the log keeps; older ones are pruned")
    parser.add_argument("--publish", action="store_true", help="put the figures into docs/performance.md, too")
    options = parser.parse_args()
    where = machine()
    samples: list[Sample] = []
    activity = {"max_records": options.records}
    with proxy({"bench": upstream()}, activity=activity) as running, Loader(running.target(CALL)) as load:
        most = maximum(load)
        rate = most * SHARE
        load.prepare(CALLERS)
        print(f"maximum {most:.0f} calls/s; running at {rate:.0f} for {options.minutes:g} minutes", flush=True)
        started = time.monotonic()
        while time.monotonic() - started < options.minutes * 60:
            samples.append(sample(running, load.run(EVERY, rate), started))
            _write({"machine": where, "maximum": most, "rate": rate, "samples": samples})
    met = verdicts(samples)
    _write({"machine": where, "maximum": most, "rate": rate, "verdicts": met, "samples": samples})
    calls = sum(one["calls"] for one in samples[1:])
    written = samples[-1]["database_mb"] - samples[0]["database_mb"]
    print(f"{calls:.0f} calls, which left {written:.0f} MB in the database: {written / calls * 1e6:.0f} bytes each")
    for one in met:
        word = "flat  " if one["flat"] else "GROWS "
        print(f"{word} {one['figure']:12} mean {one['mean']:.4g}, {one['rise']:+.4g} ({one['share']:+.1%})")
    print(draw(panels(samples), PICTURE if options.publish else RESULTS / "soak.png"))
    if options.publish:
        publish(PAGE, "soak", _markdown(where, rate, samples, met))


def _markdown(where: dict[str, Any], rate: float, samples: list[Sample], met: list[dict[str, Any]]) -> str:
    lines = ["| over the last two thirds | mean | rise | |", "|---|---|---|---|"]
    lines += [
        f"| {one['figure']} | {one['mean']:.4g} | {one['rise']:+.4g} | {'flat' if one['flat'] else 'grows'} |"
        for one in met
    ]
    said = f"{where_and_when(where)} {rate:,.0f} calls a second for {samples[-1]['minute']:.0f} minutes."
    picture = "![Memory, descriptors, database and latency over time](images/soak.png)"
    return "\n\n".join((said, picture, "\n".join(lines)))


def _write(found: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "soak.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
