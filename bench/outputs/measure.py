"""How long does one call take, and how long does it keep every other thread waiting?"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable


def timed(work: Callable[[], object], seconds: float = 1.0) -> dict[str, float]:
    """Return median and fastest milliseconds per call, over about so many seconds."""
    work()
    times: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(times) < 5:
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return {"median_ms": statistics.median(times), "fastest_ms": min(times)}


def longest_wait(work: Callable[[], object], times: int = 20) -> float:
    """Return the longest milliseconds that another thread had to wait for its turn meanwhile."""
    gaps: list[float] = []
    done = threading.Event()

    def tick() -> None:
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    ticking = threading.Thread(target=tick)
    ticking.start()
    time.sleep(0.02)
    gaps.clear()
    for _ in range(times):
        work()
    done.set()
    ticking.join()
    return max(gaps) * 1e3
