"""How is one cell measured? Gateways are started side by side; each cell is one load on one of them.

Cells of all gateways follow one another within a round, so that whatever else the machine does hits them alike.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from bench.calls.peers import ROOT, Gateway, Setting, Transport
from bench.calls.processes import Tree

START_SECONDS = 90.0
"""How long a gateway may take until its first answer."""

Row = dict[str, Any]


class Failed(Exception):
    """A gateway or a cell came to nothing; the message says why."""


class Impossible(Failed):
    """A gateway has no way from this front to this upstream."""


class Scenario(Struct, frozen=True):
    """What is before and behind the gateways, and the size of a result."""

    front: Transport
    upstream: Transport
    size: int
    callers: tuple[int, ...]
    progress: tuple[bool, ...] = (False,)


class Target(Struct):
    """Something to load: a gateway that runs, or a command that the load starts itself."""

    name: str
    arguments: list[str]
    """What the load is told."""
    command: list[str]
    tree: Tree | None = None
    """The gateway's processes; where there is none, those that the load started."""
    rest: int = 0
    """Memory before the first call."""
    environment: dict[str, str] | None = None


class Loader:
    """The load on one target, in a process of its own."""

    def __init__(self, target: Target) -> None:
        child = ["--", *target.command] if target.command else []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.calls.load", *target.arguments, *child],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=target.environment,
        )
        self.pid = self._process.pid

    def _tell(self, words: str, patience: float) -> Row:
        assert self._process.stdin is not None and self._process.stdout is not None
        guard = threading.Timer(patience, self._process.kill)
        guard.start()
        try:
            self._process.stdin.write(words + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline().strip()
        finally:
            guard.cancel()
        said: Row = {} if line == "ready" else json.loads(line or '{"error": "the load ended, or took far too long"}')
        if "error" in said:
            raise Failed(said["error"])
        return said

    def prepare(self, callers: int, progress: bool = False) -> None:
        """Have so many callers ready."""
        self._tell(f"prepare {callers} {progress}", START_SECONDS + callers)

    def run(self, seconds: float, rate: float = 0.0) -> Row:
        """Load for so long, as fast as it goes or at a rate; what it came to."""
        return self._tell(f"run {seconds} {rate}", seconds * 2 + 60)

    def close(self) -> None:
        """Let it end its sessions."""
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            self._process.communicate(timeout=10)
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def cell(target: Target, load: Loader, callers: int, progress: bool, seconds: float) -> Row:
    """One measurement: what the callers saw, and what it cost the gateway."""
    load.prepare(callers, progress)
    tree = target.tree or Tree(load.pid).child()
    tree.reset_peak()
    before, behind = tree.own().cpu, tree.upstreams().cpu
    row = load.run(seconds)
    cost, calls = tree.own(), row["calls"]
    return {
        **row,
        "cpu_us": (cost.cpu - before) / calls * 1e6,
        "upstream_cpu_us": (tree.upstreams().cpu - behind) / calls * 1e6,
        "peak_mb": cost.peak / 1e6,
        "grown_mb": max(cost.peak - target.rest, 0) / 1e6 if target.rest else 0.0,
    }


def _asked(tool: str, arguments: str, size: int) -> list[str]:
    """A call of a tool, for the load; an answer that was cut on the way is not the same work."""
    return ["--params", f'{{"name":"{tool}","arguments":{arguments}}}', "--least", str(int(size * 0.9))]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def started(command: list[str], log: IO[bytes], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process for as long as the block lasts."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, env=environment, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


@contextlib.contextmanager
def serving(gateway: Gateway, scenario: Scenario, upstream_port: int) -> Iterator[Target]:
    """A gateway that answers, ready to be loaded."""
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        port = free_port()
        setting = Setting(scenario.size, scenario.front, scenario.upstream, port, upstream_port, scratch)
        command = gateway.command(setting)
        if command is None:
            raise Impossible(f"it has no way from {scenario.front} to {scenario.upstream}")
        homes = {name: str(scratch) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
        environment = {**os.environ, **homes, **gateway.environment(setting)}
        asked = _asked(gateway.tool, gateway.arguments, scenario.size)
        if scenario.front == "stdio":
            yield Target(gateway.name, asked, command, environment=environment)
            return
        url = f"http://127.0.0.1:{port}{gateway.path}"
        with (scratch / "log").open("wb") as log, started(command, log, environment) as process:
            await_port(process, port, scratch / "log")
            key = gateway.prepare(setting)
            more = ["--key", key] if key else []
            target = Target(gateway.name, ["--url", url, "--transport", gateway.transport, *asked, *more], [])
            _await_answer(target)
            target.tree = Tree(process.pid)
            target.rest = target.tree.own().rss
            yield target


def await_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a process takes connections."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise Failed(f"it did not start: {log.read_text(errors='replace')[-500:]!r}")


def _await_answer(target: Target) -> None:
    """Its port may answer before its upstream does."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with Loader(target) as load:
                load.prepare(1)
                return
        except Failed as error:
            if time.monotonic() > deadline:
                raise Failed(f"it does not answer: {error}") from None
            time.sleep(0.5)


@contextlib.contextmanager
def direct(scenario: Scenario) -> Iterator[tuple[Target, int]]:
    """The upstream itself, and the port where it speaks HTTP, if it does."""
    port = free_port() if scenario.upstream == "http" else 0
    setting = Setting(scenario.size, scenario.front, scenario.upstream, 0, port, Path("/"))
    asked = _asked("echo", "{}", scenario.size)
    if scenario.upstream == "stdio":
        yield Target("direct", asked, setting.child), 0
        return
    with tempfile.NamedTemporaryFile() as log, started([*setting.child, str(port)], log, dict(os.environ)) as process:
        await_port(process, port, Path(log.name))
        yield Target("direct", [*asked, "--url", setting.upstream_url], [], Tree(process.pid)), port
