"""A client that sends exactly the bytes and headers it is told to, and reads JSON and event streams alike."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp

ACCEPT = "application/json, text/event-stream"
MODERN = "2026-07-28"
CLIENT = {"name": "wire-client", "version": "1"}


class Answer(NamedTuple):
    """What came back: the status, the last JSON-RPC message raw, and those before it."""

    status: int
    content_type: str
    message: bytes
    before: list[bytes]

    @property
    def result(self) -> bytes:
        """The raw result, cut out of the message by what stands around it."""
        _, _, rest = self.message.partition(b'"result":')
        assert rest, self.message
        assert rest.endswith(b"}")
        return rest[:-1]

    @property
    def decoded(self) -> Any:
        """The message as Python values."""
        return json.loads(self.message)


class WireClient:
    """One agent, of either era, on either lane."""

    def __init__(self, http: aiohttp.ClientSession, url: str, *, era: str, lane: bool) -> None:
        self._http = http
        self._url = url
        self.modern = era == "modern"
        self._lane = lane
        self._next = 0
        self.headers: dict[str, str] = {}

    async def connect(self) -> None:
        """Shake hands, where the era does."""
        if self.modern:
            self.headers = {"MCP-Protocol-Version": MODERN}
            if self._lane:  # the lane takes only envelopes that the SDK has taken before
                for name in ("call_tool_read", "call_tool_write", "call_tool_destructive"):
                    await self.call(name, '{"name":"echo:plain"}')
            return
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        async with self._http.post(
            self._url,
            json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
            headers={"Accept": ACCEPT},
        ) as response:
            assert response.status == 200
            await response.read()
            self.headers = {
                "Mcp-Session-Id": response.headers["Mcp-Session-Id"],
                "MCP-Protocol-Version": "2025-11-25",
            }
        await self.post('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def restart_ids(self) -> None:
        """Give the next request the id 1 again."""
        self._next = 0

    def meta(self, progress: str | None = None) -> str:
        """The `_meta` object of a request, or nothing."""
        members: dict[str, Any] = {"progressToken": progress} if progress is not None else {}
        if self.modern:
            members["io.modelcontextprotocol/protocolVersion"] = MODERN
            members["io.modelcontextprotocol/clientInfo"] = CLIENT
            members["io.modelcontextprotocol/clientCapabilities"] = {}
        return json.dumps(members) if members else ""

    async def call(self, tool: str, arguments: str, *, progress: str | None = None) -> Answer:
        """Call a built-in tool with raw arguments."""
        return await self.post(*self.request(tool, arguments, progress=progress))

    def request(self, tool: str, arguments: str, *, progress: str | None = None) -> tuple[str, dict[str, str]]:
        """The body of a call, and the headers that it needs beside the client's own."""
        self._next += 1
        meta = self.meta(progress)
        more = f',"_meta":{meta}' if meta else ""
        params = f'{{"name":"{tool}","arguments":{arguments}{more}}}'
        body = f'{{"jsonrpc":"2.0","id":{self._next},"method":"tools/call","params":{params}}}'
        return body, {"Mcp-Method": "tools/call", "Mcp-Name": tool} if self.modern else {}

    @property
    def every(self) -> dict[str, str]:
        """The headers of every request."""
        # The lane wants both types named; the SDK is content with a wildcard.
        return {"Content-Type": "application/json", "Accept": ACCEPT if self._lane else "*/*", **self.headers}

    async def post(self, body: str | bytes, more: dict[str, str] | None = None) -> Answer:
        """Post a body; `more` headers come on top of the client's own."""
        headers = {**self.every, **(more or {})}
        data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
        async with self._http.post(self._url, data=data, headers=headers) as response:
            raw = await response.read()
            kind = response.content_type
            if kind != "text/event-stream":
                return Answer(response.status, kind, raw, [])
            events = [line[6:] for line in raw.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data: ")]
            return Answer(response.status, kind, events[-1] if events else b"", events[:-1])


@contextlib.asynccontextmanager
async def connected(url: str, *, era: str, lane: bool) -> AsyncIterator[WireClient]:
    """A client past its handshake."""
    async with aiohttp.ClientSession() as http:
        client = WireClient(http, url, era=era, lane=lane)
        await client.connect()
        yield client
