"""Calls to the good upstreams, at a steady pace, in a process of their own: `load.py URL NAME:TOOL…`.

Each caller makes a call every 40 ms, whether or not the last one was quick; how long one took counts from when it was
due, so that a standstill is seen by all the calls that it kept waiting. Prints one line for each: when, and how long.
Ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from urllib.parse import urlsplit

EVERY = 0.04
_HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Caller:
    """One agent on one connection."""

    def __init__(self, url: str, tool: str) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port or 80, parts.path
        self._tool = tool
        self._more = b""

    async def connect(self) -> None:
        """Open the connection and shake hands."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        head, _ = await self._post({"id": 0, "method": "initialize", "params": _HANDSHAKE})
        (session,) = [line for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-session-id:")]
        self._more = session + b"\r\nMCP-Protocol-Version: 2025-11-25\r\n"
        await self._post({"method": "notifications/initialized"})

    async def call(self, number: int) -> None:
        """One call with words of its own; raises where the answer has others."""
        text = f"{self._tool} {number}"
        asked = {"name": self._tool, "args": {"text": text}}
        params = {"name": "call_tool_read", "arguments": asked}
        _, body = await self._post({"id": number, "method": "tools/call", "params": params})
        told = json.loads(body)["result"].get("structuredContent")
        if told != {"text": text}:
            raise SystemExit(f"not the answer: {body[:300]!r}")

    async def _post(self, message: dict[str, object]) -> tuple[bytes, bytes]:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._writer.write(
            b"POST %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
            b"Accept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s"
            % (self._path.encode(), self._host.encode(), self._port, self._more, len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        low = head.lower()
        if b"content-length:" in low:
            start = low.index(b"content-length:") + 15
            return head, await self._reader.readexactly(int(low[start : low.index(b"\r\n", start)]))
        chunks = b""
        while b"chunked" in low and (size := int(await self._reader.readline(), 16)):
            chunks += (await self._reader.readexactly(size + 2))[:-2]
        if b"chunked" in low:
            await self._reader.readline()
        return head, chunks.partition(b"data: ")[2] or chunks

    async def run(self, first: float) -> None:
        """Call at every tick, for ever."""
        number, due = 0, first
        while True:
            await asyncio.sleep(due - time.monotonic())
            number += 1
            await self.call(number)
            sys.stdout.write(f"{due:.4f} {time.monotonic() - due:.6f}\n")
            due += EVERY


async def main() -> None:
    """Connect all callers, and call until nobody listens any more."""
    url, *tools = sys.argv[1:]
    callers = [Caller(url, tool) for tool in tools]
    for caller in callers:
        await caller.connect()
    begin = time.monotonic()
    ticks = [asyncio.create_task(caller.run(begin + at * EVERY / len(tools))) for at, caller in enumerate(callers)]
    end = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    done, _ = await asyncio.wait({end, *ticks}, return_when=asyncio.FIRST_COMPLETED)
    for task in done - {end}:
        task.result()
    for tick in ticks:
        tick.cancel()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
