"""The load: so many callers, each with one call under way, in one epoll loop in a process of its own.

Told line by line what to do: `prepare CALLERS PROGRESS` shakes hands with as many as are missing, lets each call once
and says "ready"; `run SECONDS RATE` calls for so long and prints one line of JSON: how many calls, how long they took,
and how much of a core it needed itself. With a rate the callers do not hurry: together they start so many a second.
"""

from __future__ import annotations

import argparse
import gc
import json
import select
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec import structs

from bench.calls.callers import PATIENCE, Caller, Http, Job, Sse, Stdio, WrongAnswer

CLIENTS: dict[str, type[Http] | type[Sse]] = {"http": Http, "sse": Sse}


class Load:
    """Callers at work."""

    def __init__(self, connect: Callable[[], Caller], *, shared: bool) -> None:
        self._connect = connect
        self._shared = shared
        """Whether all callers speak through one pipe."""
        self._callers: list[Caller] = []
        self._active: list[Caller] = []
        self._warm = 0
        """How many have made a call."""
        self._by_number: dict[int, Caller] = {}
        self._events = select.epoll()
        self._waiting: dict[tuple[int, int], float] = {}
        """When each call under way was made, by descriptor and id."""

    def prepare(self, count: int, job: Job) -> None:
        """Have so many callers, connected and warm."""
        if self._shared and not self._callers:
            self._callers = [self._connect()]  # in this thread: a child is listed with the thread that started it
        elif not self._shared:
            with ThreadPoolExecutor(8) as many:
                self._callers += many.map(lambda _: self._connect(), range(count - len(self._callers)))
        chosen = self._callers[:count]
        self._active = chosen * count if self._shared else chosen
        if count > self._warm:
            self._warm = count
            self._open(chosen, job)
            self.run(0.0)
        self._open(chosen, job)  # after the last run, or the first call, a connection may have idled for long

    def _open(self, callers: list[Caller], job: Job) -> None:
        for caller in callers:
            caller.prepare(job)
        self._events.close()
        self._events = select.epoll()
        self._by_number = {caller.fileno(): caller for caller in callers}
        for number in self._by_number:
            self._events.register(number, select.EPOLLIN)

    def run(self, seconds: float, rate: float = 0.0) -> list[float]:
        """Call until the time is over, and wait for what is under way; how long each took, in seconds.

        Without a rate every run is to be prepared; with one, the callers stay connected from run to run.
        """
        took: list[float] = []
        clock = time.perf_counter
        waiting, by_number, poll = self._waiting, self._by_number, self._events.poll
        free = deque(self._active)
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
                    if rate:
                        free.append(caller)
                    elif now < stop:
                        waiting[number, caller.ask()] = now
                    elif not self._shared:  # others may take long, and its idle connection be closed meanwhile
                        self._events.unregister(number)
        return took

    def _ask(self, caller: Caller, began: float) -> None:
        self._waiting[caller.fileno(), caller.ask()] = began

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


def main() -> None:
    """Read the command line, and do what we are told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--transport", choices=CLIENTS, default="http")
    parser.add_argument("--key", default="", help="a bearer token")
    parser.add_argument("--method", default="tools/call")
    parser.add_argument("--params", required=True, help="JSON, not empty")
    parser.add_argument("--sign", default="xxxxxxxx", help="what stands in every right answer")
    parser.add_argument("--least", type=int, default=1, help="how many bytes an answer has")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    client = CLIENTS[options.transport]
    job = Job(options.method, options.params, options.least, options.sign.encode())

    def connect() -> Caller:
        return Stdio(options.command) if options.command else client(options.url, options.key)

    load = Load(connect, shared=bool(options.command))
    gc.disable()
    try:
        for line in iter(sys.stdin.readline, ""):
            match line.split():
                case ["prepare", count, progress]:
                    load.prepare(int(count), structs.replace(job, progress=progress == "True"))
                    print("ready", flush=True)
                case ["run", seconds, rate]:
                    print(json.dumps(_measured(load, float(seconds), float(rate))), flush=True)
    except (WrongAnswer, OSError, ValueError, KeyError) as error:
        print(json.dumps({"error": str(error) or type(error).__name__}), flush=True)
    load.close()


def _measured(load: Load, seconds: float, rate: float) -> dict[str, float]:
    cpu, began = time.process_time(), time.perf_counter()
    took = load.run(seconds, rate)
    passed = time.perf_counter() - began
    return {**figures(took, passed), "load_share": (time.process_time() - cpu) / passed}


if __name__ == "__main__":
    main()
