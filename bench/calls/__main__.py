"""`python -m bench.calls`: the same load on every gateway, interleaved in one run; only the ratios mean something."""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from bench.calls.peers import GATEWAYS, Gateway, upstream_command

LOAD = Path(__file__).with_name("load.py")
RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="names of gateways, comma-separated")
    parser.add_argument("--sizes", default="200,10000,1000000")
    parser.add_argument("--callers", default="1,16,64")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--progress", action="store_true", help="ask for progress, as real clients do")
    options = parser.parse_args()
    chosen = [gateway for gateway in GATEWAYS if not options.only or gateway.name in options.only.split(",")]
    ready, missing = _installed(chosen)
    rows = [
        row
        for size in map(int, options.sizes.split(","))
        for row in _measure(ready, size, [int(n) for n in options.callers.split(",")], options)
    ]
    _print(rows)
    for name, why in missing.items():
        print(f"{name}: not measured, {why}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "calls.json").write_text(json.dumps({"rows": rows, "missing": missing}, indent=1))


def _installed(chosen: list[Gateway]) -> tuple[list[Gateway], dict[str, str]]:
    ready, missing = [], {}
    for gateway in chosen:
        try:
            gateway.install()
            ready.append(gateway)
        except (OSError, subprocess.CalledProcessError) as error:
            missing[gateway.name] = f"it could not be installed: {error}"
    return ready, missing


def _measure(
    gateways: list[Gateway], size: int, callers: list[int], options: argparse.Namespace
) -> list[dict[str, Any]]:
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    with contextlib.ExitStack() as stack:
        running = {gateway.name: stack.enter_context(_running(gateway, size)) for gateway in gateways}
        for _ in range(options.rounds):
            for number in callers:
                found.setdefault(("direct", number), []).append(_direct(size, number, options.seconds))
                for gateway in gateways:
                    started = running[gateway.name]
                    if started is None:
                        continue
                    try:
                        run = _load(gateway, started, size, number, options)
                    except (subprocess.SubprocessError, psutil.Error):
                        print(f"{gateway.name} failed under {number} callers of {size} bytes")
                        continue
                    found.setdefault((gateway.name, number), []).append(run)
    return [
        {"gateway": name, "size": size, "callers": number, **_median(runs)} for (name, number), runs in found.items()
    ]


def _median(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


@contextlib.contextmanager
def _running(gateway: Gateway, size: int) -> Iterator[tuple[int, psutil.Process] | None]:
    with socket.socket() as probe, tempfile.TemporaryDirectory() as scratch:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        log = (Path(scratch) / "log").open("wb")
        process = subprocess.Popen(gateway.command(port, size, Path(scratch)), stdout=log, stderr=log)
        try:
            yield (port, psutil.Process(process.pid)) if _answers(gateway, port, size) else None
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            log.close()


def _answers(gateway: Gateway, port: int, size: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
            _run(_arguments(gateway, port, size, 1, 0.1), timeout=10)
            return True
        time.sleep(0.5)
    print(f"{gateway.name} does not answer")
    return False


def _arguments(gateway: Gateway, port: int, size: int, callers: int, seconds: float) -> list[str]:
    url = f"http://127.0.0.1:{port}{gateway.path}"
    least = str(min(size // 2, 100))
    common = ["--callers", str(callers), "--seconds", str(seconds), "--least", least]
    return ["--url", url, "--tool", gateway.tool, "--arguments", gateway.arguments, *common]


def _run(arguments: list[str], timeout: float) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, LOAD, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=timeout,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _load(
    gateway: Gateway, started: tuple[int, psutil.Process], size: int, callers: int, options: argparse.Namespace
) -> dict[str, float]:
    port, process = started
    more = ["--progress"] if options.progress else []
    before = _cpu(process)
    run = _run([*_arguments(gateway, port, size, callers, options.seconds), *more], timeout=options.seconds * 10 + 60)
    return {**run, "cpu_us": (_cpu(process) - before) / run["calls"] * 1e6, "rss_mb": _memory(process)}


def _direct(size: int, callers: int, seconds: float) -> dict[str, float]:
    common = ["--tool", "echo", "--callers", str(callers), "--seconds", str(seconds)]
    return {**_run([*common, "--", *upstream_command(size)], timeout=seconds * 10 + 60), "cpu_us": 0.0, "rss_mb": 0.0}


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _memory(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 1e6)


def _print(rows: list[dict[str, Any]]) -> None:
    columns = {"bytes": 9, "callers": 8, "calls/s": 10, "of direct": 10, "p50 ms": 9, "p99 ms": 9, "CPU µs": 9, "MB": 7}
    print("gateway       " + "".join(f"{name:>{width}}" for name, width in columns.items()))
    direct = {(row["size"], row["callers"]): row["per_second"] for row in rows if row["gateway"] == "direct"}
    for row in sorted(rows, key=lambda row: (row["size"], row["callers"], -row["per_second"])):
        ratio = row["per_second"] / direct[row["size"], row["callers"]]
        print(
            f"{row['gateway']:14}{row['size']:>9}{row['callers']:>8}{row['per_second']:>10.0f}{ratio:>10.3f}"
            f"{row['p50_ms']:>9.2f}{row['p99_ms']:>9.2f}{row['cpu_us']:>9.0f}{row['rss_mb']:>7.0f}"
        )


if __name__ == "__main__":
    main()
