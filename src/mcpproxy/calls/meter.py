"""How many calls, how fast, and to what end? Plain numbers in one event loop: counting costs a call next to nothing."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from mcpproxy.outputs.schema import CompiledSchema

if TYPE_CHECKING:
    from mcpproxy.activity.record import Status
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Call

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds in seconds."""
MOST_SERVERS: Final = 1000
OTHERS: Final = "(others)"
"""Stands for servers beyond that many: what is counted by name must not grow for ever."""
NOBODY: Final = ""
"""Stands for calls that name no known server: a caller may write anything there."""

Outcome = Literal["passed", "warned", "blocked", "unchecked"]


class Latency:
    """How long the calls of one kind took."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one call."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Meter:
    """The numbers of all calls since the start."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str, Status]] = Counter()
        """By server, variant and status."""
        self.latency: dict[tuple[str, str], Latency] = {}
        """By server and variant."""
        self.outputs: Counter[Outcome] = Counter()
        """What became of results that were to be held against a schema."""
        self._servers: set[str] = set()

    def add(self, call: Call, house: House, status: Status) -> None:
        """Count a call that is over."""
        kind = (self._server(call, house), call.variant)
        self.calls[(*kind, status)] += 1
        latency = self.latency.get(kind)
        if latency is None:
            latency = self.latency[kind] = Latency()
        latency.add(time.perf_counter() - call.started)
        outcome = _outcome(call, status)
        if outcome is not None:
            self.outputs[outcome] += 1

    def _server(self, call: Call, house: House) -> str:
        name = call.server
        if name in self._servers:
            return name
        if house.pool.get(name) is None:
            return NOBODY
        if len(self._servers) >= MOST_SERVERS:
            return OTHERS
        self._servers.add(name)
        return name


def _outcome(call: Call, status: Status) -> Outcome | None:
    if "output_validation" in call.findings:
        return "blocked" if status == "blocked" else "warned"
    plan, view = call.plan, call.view
    if plan is None or plan.output_schema is None or view is None or view.is_error:
        return None
    checked = call.config.output_validation.mode != "off" and isinstance(plan.output_schema, CompiledSchema)
    return "passed" if checked else "unchecked"
