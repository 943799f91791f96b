"""Child processes to talk to, and channels to them."""

import asyncio
import base64
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import uvloop

from mcpproxy.config.models import Server
from mcpproxy.wire.reaper import Reaper
from mcpproxy.wire.stdio import StdioChannel, child_environment

SCRIPT = Path(__file__).with_name("bad_server.py")
LIMIT = 1024 * 1024
TIMEOUT = 20.0
"""For what must happen: long enough that only a hang reaches it."""


def command(**options: Any) -> list[str]:
    """The command line of a misbehaving server."""
    return [sys.executable, "-I", "-S", str(SCRIPT), json.dumps(options)]


def bad_server(name: str, **options: Any) -> Server:
    """The configuration of a misbehaving server."""
    program, *args = command(**options)
    return Server(name=name, command=program, args=tuple(args))


@contextlib.asynccontextmanager
async def spawned(
    *,
    limit: int = LIMIT,
    stderr: list[bytes] | None = None,
    env: dict[str, str] | None = None,
    cwd: str | None = None,
    **options: Any,
) -> AsyncIterator[StdioChannel]:
    """A channel to a misbehaving server; no handshake is made, and none is needed by it."""
    reaper = Reaper()
    program, *args = command(**options)
    try:
        channel = await StdioChannel.spawn(
            program,
            args,
            env=child_environment(env or {}),
            cwd=cwd,
            max_result_bytes=limit,
            on_stderr=(stderr if stderr is not None else []).append,
            reaper=reaper,
        )
        try:
            yield channel
        finally:
            await channel.close()
    finally:
        reaper.stop()


async def call(channel: StdioChannel, name: str, *, timeout: float = TIMEOUT, **arguments: Any) -> Any:
    """Call a tool and decode what came back."""
    params = json.dumps({"name": name, "arguments": arguments}).encode()
    return json.loads(await channel.call_raw("tools/call", params, timeout=timeout))["structuredContent"]


async def call_raw(channel: StdioChannel, name: str, *, timeout: float = TIMEOUT, **arguments: Any) -> bytes:
    """Call a tool and give its result as it came."""
    params = json.dumps({"name": name, "arguments": arguments}).encode()
    return await channel.call_raw("tools/call", params, timeout=timeout)


def b64(data: bytes) -> str:
    """Bytes as an argument."""
    return base64.b64encode(data).decode()


def run(main: Coroutine[Any, Any, Any], loop: str = "asyncio") -> Any:
    """Run a test's coroutine on one of the loops that the product runs on; nothing takes a minute."""

    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await main

    return uvloop.run(bounded()) if loop == "uvloop" else asyncio.run(bounded())


async def until(condition: Callable[[], Any], what: str = "", seconds: float = TIMEOUT) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it never happened: {what or condition}"
        await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet buried does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False
