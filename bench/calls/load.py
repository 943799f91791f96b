"""The load: so many callers, each with one call under way, in one epoll loop in a process of its own.

Shakes hands and makes one call each, says "ready", waits for a line, and then calls for so many seconds. Prints one
line of JSON: how many calls, how long they took, and how much of a core it needed itself. With `--rate` the callers
do not hurry: together they start so many calls a second (bench.soak).
"""

from __future__ import annotations

import argparse
import gc
import json
import select
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.calls.callers import PATIENCE, Caller, Http, Job, Sse, Stdio, WrongAnswer

CLIENTS: dict[str, type[Http] | type[Sse]] = {"http": Http, "sse": Sse}


class Load:
    """Callers at work."""

    def __init__(self, callers: list[Caller]) -> None:
        self._callers = callers
        self._events = select.epoll()
        self._by_number = {caller.fileno(): caller for caller in callers}
        for number in self._by_number:
            self._events.register(number, select.EPOLLIN)
        self._waiting: dict[tuple[int, int], float] = {}
        """When each call under way was made, by descriptor and id."""

    def run(self, seconds: float, rate: float = 0.0) -> list[float]:
        """Call until the time is over, and wait for what is under way; how long each took, in seconds."""
        took: list[float] = []
        clock = time.perf_counter
        waiting, by_number, poll = self._waiting, self._by_number, self._events.poll
        free = deque(caller for caller in self._callers for _ in range(caller.lanes))
        due = start = clock()
        stop, pause = start + seconds, 1.0 / rate if rate else 0.0
        while free and not rate:
            self._ask(free.popleft(), clock())
        while (now := clock()) < stop or waiting:
            while free and due <= now < stop:
                # A late start counts from when it was due, or a slow server would slow the measurement down.
                self._ask(free.popleft(), due)
                due += pause
            nap = max(due - now, 0.0) if free and now < stop else PATIENCE
            events = poll(nap)
            if not events and nap == PATIENCE:
                raise WrongAnswer(f"no answer for {PATIENCE:g} s")
            for number, _ in events:
                caller = by_number[number]
                for answered in caller.read():
                    now = clock()
                    took.append(now - waiting.pop((number, answered)))
                    if rate or now >= stop:
                        free.append(caller)
                    else:
                        waiting[number, caller.ask()] = now
        return took

    def _ask(self, caller: Caller, began: float) -> None:
        self._waiting[caller.fileno(), caller.ask()] = began

    def warm_up(self) -> None:
        """One call of each."""
        self.run(0.0)

    def close(self) -> None:
        """End every session."""
        with ThreadPoolExecutor(16) as many:
            list(many.map(lambda caller: caller.close(), self._callers))


def figures(took: list[float], seconds: float) -> dict[str, float]:
    """What many durations come to."""
    took.sort()
    return {
        "calls": len(took),
        "per_second": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[int(len(took) * 0.99)] * 1e3,
    }


def connect(options: argparse.Namespace) -> Load:
    """All callers, connected."""
    job = Job(options.tool, options.arguments, options.least, options.progress)
    callers: list[Caller]
    if options.command:
        callers = [Stdio(options.command, job, options.callers)]
    else:
        client = CLIENTS[options.transport]
        with ThreadPoolExecutor(8) as many:
            callers = list(many.map(lambda _: client(options.url, job, options.key), range(options.callers)))
    return Load(callers)


def main() -> None:
    """Read the command line, connect, wait for the word, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--transport", choices=CLIENTS, default="http")
    parser.add_argument("--key", default="", help="a bearer token")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--arguments", default="{}")
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rate", type=float, default=0.0, help="calls a second in all; 0: as fast as they can")
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    try:
        load = connect(options)
        load.warm_up()
        gc.disable()
        for line in _words():
            seconds = float(line or options.seconds)
            cpu, began = time.process_time(), time.perf_counter()
            took = load.run(seconds, options.rate)
            passed = time.perf_counter() - began
            share = (time.process_time() - cpu) / passed
            print(json.dumps({**figures(took, passed), "load_share": share}), flush=True)
        load.close()
    except (WrongAnswer, OSError, ValueError, KeyError) as error:
        print(json.dumps({"error": str(error) or type(error).__name__}), flush=True)


def _words() -> Iterator[str]:
    """Say that we are ready; each line we are told then is one run of so many seconds."""
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        yield line.strip()


if __name__ == "__main__":
    main()
