"""HTTP servers to talk to: one whose every answer a test can replace, and the official SDK's."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import uvicorn
from aiohttp import web
from multidict import CIMultiDictProxy

SESSION = "Mcp-Session-Id"
Application = Callable[[web.Request], Awaitable[web.StreamResponse]]
Handler = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


class Seen(NamedTuple):
    """One HTTP request that a server got."""

    verb: str
    headers: CIMultiDictProxy[str]
    message: dict[str, Any]


def answer(message: dict[str, Any], result: Any, **headers: str) -> web.Response:
    """A JSON answer."""
    body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return web.json_response(body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def raw_answer(message: dict[str, Any], result: bytes) -> web.Response:
    """A JSON answer with these bytes as its result."""
    body = b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (message["id"], result)
    return web.Response(body=body, content_type="application/json")


async def stream(request: web.Request, *chunks: bytes, headers: dict[str, str] | None = None) -> web.StreamResponse:
    """An event stream of these pieces; it ends after the last."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **(headers or {})})
    await response.prepare(request)
    for chunk in chunks:
        await response.write(chunk)
        await asyncio.sleep(0)
    return response


def event(data: dict[str, Any] | bytes, event_id: str | None = None) -> bytes:
    """One server-sent event."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return (b"id: %s\n" % event_id.encode() if event_id is not None else b"") + b"data: %s\n\n" % body


async def hang_up(request: web.Request) -> web.StreamResponse:
    """Break the connection, as a server that dies."""
    assert request.transport is not None
    request.transport.abort()
    await asyncio.sleep(0.05)
    return web.Response()


class HttpUpstream:
    """A streamable-HTTP server of the handshake era; `on` replaces what it does for a method or an HTTP verb."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[Seen] = []
        self.on: dict[str, Handler] = {}
        self.sessions = 0
        self.tools: list[dict[str, Any]] = [{"name": "echo", "inputSchema": {"type": "object"}}]
        self.capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
        self.say: asyncio.Queue[bytes] = asyncio.Queue()
        """Events for the listening stream; there is one only while `streams` is set."""
        self.streams = False

    def messages(self, method: str) -> list[Seen]:
        """Every request with that method, so far."""
        return [seen for seen in self.seen if seen.message.get("method") == method]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message = json.loads(body) if body else {}
        self.seen.append(Seen(request.method, request.headers, message))
        method = str(message.get("method", request.method))
        known = {
            "GET": self._listen,
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._list,
            "tools/call": self._call,
            "server/discover": self._refuse,
        }
        handler = self.on.get(method) or known.get(method)
        return await handler(request, message) if handler is not None else web.Response(status=202)

    async def _initialize(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        self.sessions += 1
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": self.capabilities,
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        return answer(message, result, Mcp_Session_Id=f"s{self.sessions}")

    async def _ping(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        return answer(message, {})

    async def _list(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        return answer(message, {"tools": self.tools})

    async def _call(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        return answer(message, {"content": [], "structuredContent": message["params"].get("arguments")})

    async def _refuse(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        body = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}}
        return web.json_response(body, status=400)

    async def _listen(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        if not self.streams:
            return web.Response(status=405)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while data := await self.say.get():
            await response.write(data)
        return response


@contextlib.asynccontextmanager
async def serving(upstream: HttpUpstream | Application, port: int = 0) -> AsyncIterator[str]:
    """Serve it on this port, or on one of its own, for as long as the block lasts; gives the address."""
    handler = upstream._handle if isinstance(upstream, HttpUpstream) else upstream
    runner = web.AppRunner(_application(handler), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    if isinstance(upstream, HttpUpstream):
        upstream.url = url
    try:
        yield url
    finally:
        await runner.cleanup()


def _application(handler: Application) -> web.Application:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", handle)
    return application


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def in_a_thread(application: Any) -> Iterator[str]:
    """Run an ASGI application with uvicorn beside the test; gives its origin."""
    port = free_port()
    config = uvicorn.Config(application, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
