"""How long did it take? Percentiles of many runs."""

from __future__ import annotations

import time
from collections.abc import Callable


def percentile(seconds: list[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))]


def repeat(act: Callable[[], object], runs: int) -> list[float]:
    """How long each run took, in seconds."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return times


def milliseconds(times: list[float]) -> str:
    """p50 and p99, for a table."""
    return f"{percentile(times, 0.5) * 1e3:9.3f} {percentile(times, 0.99) * 1e3:9.3f}"
