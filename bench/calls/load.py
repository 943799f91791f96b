"""A light client: raw HTTP/1.1 with keep-alive and a proper handshake, or stdio; JSON and event streams alike.

Runs as a process of its own and prints one line of JSON: how many calls in how many seconds, and how long they took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

Call = Callable[[int], Coroutine[Any, Any, bytes]]
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Http:
    """One caller with one connection and one session."""

    def __init__(self, url: str, tool: str, arguments: dict[str, Any], progress: bool) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port or 80, parts.path
        self._tool, self._arguments, self._progress = tool, arguments, progress
        self._extra = b""

    async def connect(self) -> None:
        """Open the connection and shake hands."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=1 << 26)
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HANDSHAKE}
        head, _ = await self._post(json.dumps(body).encode())
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"mcp-session-id:"):
                self._extra = line + b"\r\n"
        self._extra += b"MCP-Protocol-Version: 2025-11-25\r\n"
        await self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def call(self, number: int) -> bytes:
        """One call; returns the bytes of its answer."""
        params: dict[str, Any] = {"name": self._tool, "arguments": self._arguments}
        if self._progress:
            params["_meta"] = {"progressToken": number}
        body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        return (await self._post(json.dumps(body).encode()))[1]

    async def _post(self, body: bytes) -> tuple[bytes, bytes]:
        self._writer.write(
            b"POST %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s"
            % (self._path.encode(), self._host.encode(), self._port, self._extra, len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        low = head.lower()
        if b"content-length:" in low:
            start = low.index(b"content-length:") + 15
            return head, await self._reader.readexactly(int(low[start : low.index(b"\r\n", start)]))
        if b"transfer-encoding: chunked" not in low:
            return head, b""
        parts = []
        while size := int(await self._reader.readline(), 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readline()
        return head, b"".join(parts)


class Stdio:
    """The upstream itself, shared by every caller: what nothing in between can beat."""

    def __init__(self, command: list[str], tool: str, arguments: dict[str, Any]) -> None:
        self._command, self._tool, self._arguments = command, tool, arguments
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._last = 0

    async def connect(self) -> None:
        """Start the child and shake hands."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 26
        )
        self._reading = asyncio.create_task(self._read())
        await self._ask("initialize", HANDSHAKE)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            start = line.index(b'"id":') + 5
            number = int(line[start : line.index(b",", start)])
            self._waiting.pop(number).set_result(line)

    async def _ask(self, method: str, params: dict[str, Any]) -> bytes:
        self._last += 1
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[self._last] = future
        body = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(body, separators=(",", ":")).encode() + b"\n")
        return await future

    async def call(self, number: int) -> bytes:
        """One call; returns the bytes of its answer."""
        return await self._ask("tools/call", {"name": self._tool, "arguments": self._arguments})


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Let every caller call until the time is over."""
    arguments = json.loads(options.arguments)
    calls: list[Call] = []
    if options.command:
        shared = Stdio(options.command, options.tool, arguments)
        await shared.connect()
        calls = [shared.call] * options.callers
    else:
        clients = [Http(options.url, options.tool, arguments, options.progress) for _ in range(options.callers)]
        for client in clients:
            await client.connect()
        calls = [client.call for client in clients]
    took: list[float] = []
    stop = time.perf_counter() + options.seconds

    async def caller(call: Call) -> None:
        number = 0
        while (began := time.perf_counter()) < stop:
            number += 1
            answer = await call(number)
            took.append(time.perf_counter() - began)
            if len(answer) < options.least or b'isError":true' in answer:
                raise SystemExit(f"not an answer: {answer[:300]!r}")

    began = time.perf_counter()
    await asyncio.gather(*(caller(call) for call in calls))
    seconds = time.perf_counter() - began
    took.sort()
    return {
        "calls": len(took),
        "per_second": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[int(len(took) * 0.99)] * 1000,
    }


def main() -> None:
    """Read the command line, run, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--arguments", default="{}")
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--least", type=int, default=1)
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("command", nargs="*")
    import uvloop

    sys.stdout.write(json.dumps(uvloop.run(measure(parser.parse_args()))) + "\n")


if __name__ == "__main__":
    main()
