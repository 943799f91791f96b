"""A streamable-HTTP server that misbehaves on request, as a process of its own: it can die, stop and come back.

`python -m tests.faults.upstream_http_server PORT…` serves the same on each port. A tool's name says what a call of it
comes to; `heard` counts the calls that arrived, under whatever address.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web
from tests.support.http_servers import Handler, HttpUpstream, answer, event, hang_up, raw_answer, serving, stream

JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}
BLOCK = b"x" * 65536
calls: Counter[str] = Counter()


def arguments(message: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = message["params"].get("arguments") or {}
    return given


def filled(message: dict[str, Any]) -> bytes:
    """The bytes that the caller asks for, with $ID as the request's id."""
    return base64.b64decode(arguments(message)["data"]).replace(b"$ID", json.dumps(message["id"]).encode())


async def pour(request: web.Request, headers: dict[str, str], pieces: AsyncIterator[bytes]) -> web.StreamResponse:
    """An answer in pieces, for as long as somebody takes them."""
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    async for piece in pieces:
        await response.write(piece)
    return response


# What a tool of that name does when it is called.


async def echo(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    return answer(message, {"content": [], "structuredContent": arguments(message)})


async def heard(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    return answer(message, {"content": [], "structuredContent": dict(calls)})


async def die(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    os._exit(3)


async def never(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def late(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    await asyncio.sleep(arguments(message)["seconds"])
    return answer(message, {"content": [], "structuredContent": {"late": True}})


async def raw(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """The given bytes as the whole answer."""
    headers = EVENTS if arguments(message).get("streamed") else JSON
    return web.Response(body=filled(message), headers=headers, status=arguments(message).get("status", 200))


async def html(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    return web.Response(text="<html>Bad gateway", content_type="text/html", status=arguments(message)["status"])


async def redirect(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    return web.Response(status=arguments(message)["status"], headers={"Location": str(request.url / "elsewhere")})


async def big(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """One line of this size, as an event or as JSON that does not say how long it is."""
    streamed = arguments(message).get("streamed", False)

    async def pieces() -> AsyncIterator[bytes]:
        yield b'%s{"jsonrpc":"2.0","id":%d,"result":{"x":"' % (b"data: " if streamed else b"", message["id"])
        for _ in range(arguments(message)["size"] // len(BLOCK)):
            yield BLOCK
        yield b'"}}\n\n'

    return await pour(request, EVENTS if streamed else JSON, pieces())


async def many(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """A result that is small enough, but made of very many small things."""
    if arguments(message)["of"] == "members":
        return raw_answer(message, b'{"isError":"yes"' + b',"a":1' * 300_000 + b"}")
    first = b'{"type":"text","text":"%s"}' % (b"x" * 100_000 if arguments(message)["of"] == "text" else b"")
    return raw_answer(message, b'{"content":[%s%s],"structuredContent":{"n":1}}' % (first, b",{}" * 500_000))


async def told(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """An answer that says in its head how long it is."""
    size = arguments(message)["size"]
    response = web.StreamResponse(headers={**JSON, "Content-Length": str(size)})
    await response.prepare(request)
    for _ in range(size // len(BLOCK)):
        await response.write(BLOCK)
    return response


async def flood(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """The same bytes over and over, and never an answer."""
    block = filled(message) * max(1, len(BLOCK) // len(filled(message)))

    async def pieces() -> AsyncIterator[bytes]:
        for _ in itertools.count():
            yield block

    return await pour(request, EVENTS, pieces())


async def half(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """The first half of an answer, and then a connection that breaks."""
    streamed = arguments(message).get("streamed", False)
    beginning = b'{"jsonrpc":"2.0","id":%d,"result":{"content"' % message["id"]
    if streamed:
        await stream(request, b"data: " + beginning)
    else:
        response = web.StreamResponse(headers={**JSON, "Content-Length": "1000"})
        await response.prepare(request)
        await response.write(beginning)
    return await hang_up(request)


async def twice(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """The right answer, and the same one again."""
    body = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [], "structuredContent": arguments(message)}}
    if arguments(message).get("streamed"):
        return await stream(request, event(body) + event(body))
    return web.json_response([body, body])


TOOLS: dict[str, Handler] = {
    tool.__name__: tool
    for tool in (echo, heard, die, never, late, raw, html, redirect, big, many, told, flood, half, twice)
}  # fmt: skip


async def hanging(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def redirecting(request: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": "https://example.org/mcp"})


async def failing(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503, text="down for repairs")


async def showing(request: web.Request) -> web.StreamResponse:
    return web.Response(text="<html>Welcome", content_type="text/html")


BROKEN = {"/hanging": hanging, "/redirecting": redirecting, "/failing": failing, "/showing": showing}
MENDED = "mended"
"""A file in the home directory that ends these."""


class BadHttp(HttpUpstream):
    """A server of the handshake era whose tools are `TOOLS`, and whose other addresses are broken until mended."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        self.on = {"tools/call": self._misbehave}

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/mcp" or (Path.home() / MENDED).exists():
            return await super()._handle(request)
        return await BROKEN[request.path](request)

    async def _misbehave(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        self.seen.clear()  # a bench makes many thousands
        name = message["params"]["name"]
        calls[name] += 1
        return await TOOLS[name](request, message)


async def serve(ports: list[int]) -> None:
    """Serve on every port until the process is ended."""
    async with contextlib.AsyncExitStack() as stack:
        for port in ports:
            await stack.enter_async_context(serving(BadHttp(), port))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve([int(port) for port in sys.argv[1:]]))
