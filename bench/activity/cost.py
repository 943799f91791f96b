"""What does a record cost the call it is about?

The call itself is stood for by the CPU time that the gateway was measured to spend on one (DESIGN.md, 74 µs), burnt on
the event loop. With and without the journal take turns many times; ratios are taken within a round and their median
counts, since the machine is not as fast in one second as in the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from msgspec import Raw, Struct, structs

from bench.activity.measure import percentile
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record
from mcpproxy.policy.intent import Intent
from mcpproxy.storage.engine import Storage

CALL_MICROSECONDS = 74
CALLERS = (1, 16, 64)
ROUNDS = 12
SECONDS = 0.5

Recorder = Callable[[Record], Awaitable[None]]


class Measured(Struct):
    """One round."""

    per_second: float
    p50: float
    p99: float


async def measure_cost(storage: Storage, data_dir: Path) -> bool:
    """Print throughput and latency with and without the journal; tells whether the targets are met."""
    journal = Journal(storage, data_dir)
    await journal.start()

    async def none(_: Record) -> None:
        return

    async def modifying(record: Record) -> None:
        await journal.open_call(record)
        await journal.close_call(structs.replace(record, duration_ms=1.0))

    ways: dict[str, Recorder] = {"none": none, "read": journal.write, "write": modifying}
    print(
        f"\n{'callers':>7s} {'journal':>8s} {'calls/s':>9s} {'share':>7s} {'p50 µs':>8s} {'added':>7s} {'p99 µs':>8s}"
    )
    met = True
    for callers in CALLERS:
        rounds: dict[str, list[Measured]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            spin = _calibrate()
            for name, record in ways.items():
                rounds[name].append(await _round(callers, record, spin))
        for name, found in rounds.items():
            beside = list(zip(found, rounds["none"], strict=True))
            share = median(one.per_second / base.per_second for one, base in beside)
            added = median(one.p50 - base.p50 for one, base in beside)
            print(
                f"{callers:7d} {name:>8s} {median(one.per_second for one in found):9.0f} {share:7.1%} "
                f"{median(one.p50 for one in found) * 1e6:8.0f} {added * 1e6:7.0f} "
                f"{median(one.p99 for one in found) * 1e6:8.0f}"
            )
            if name == "read":
                met = met and (callers != 64 or share > 0.75) and (callers != 1 or added < 0.0001)
    await journal.stop()
    print("\ntargets: less than 25 % of the throughput at 64 callers, less than 100 µs added to p50 at one:", end=" ")
    print("met" if met else "MISSED")
    return met


async def _round(callers: int, record: Recorder, spin: int) -> Measured:
    times: list[float] = []
    end = time.perf_counter() + SECONDS

    async def caller(number: int) -> None:
        while (began := time.perf_counter()) < end:
            _burn(spin)
            await asyncio.sleep(0)
            await record(_record(number))
            times.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(callers)))
    took = time.perf_counter() - began
    # What this round left to be indexed must not be paid for by the next.
    await asyncio.sleep(0.3)
    return Measured(len(times) / took, percentile(times, 0.5), percentile(times, 0.99))


def _record(number: int) -> Record:
    return Record(
        type="tool_call",
        source="mcp",
        server_name="github",
        tool_name="create_issue",
        status="success",
        arguments=Raw(b'{"owner":"acme","repo":"widgets","title":"Bug"}'),
        response=Raw(_RESPONSE),
        duration_ms=1.25,
        request_id=f"req-{number}",
        session_id="session-1",
        client_name="claude-code",
        metadata={
            "intent": Intent("write", reason="Creating a bug report"),
            "tool_variant": "call_tool_write",
        },
    )


_RESPONSE = b'{"content":[{"type":"text","text":"' + b"x" * 200 + b'"}]}'


def _burn(loops: int) -> None:
    for _ in range(loops):
        pass


def _calibrate() -> int:
    loops = 20_000
    times = []
    for _ in range(50):
        began = time.perf_counter()
        _burn(loops)
        times.append(time.perf_counter() - began)
    return max(1, int(loops * CALL_MICROSECONDS / 1e6 / min(times)))
