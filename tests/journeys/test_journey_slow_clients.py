"""What may a client cost that sends next to nothing, slowly? A connection for a while, and nobody else anything.

The proxy runs in the test's own process here, so that its deadlines can be short.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.journeys.support import PATIENCE

from mcpproxy import asgi, listen
from mcpproxy.app import App
from mcpproxy.config.load import load
from mcpproxy.config.mask import Masker

DEADLINE = 0.4
SLOW = 0.05
"""How long a slow client pauses: often enough within the deadline that only a deadline for the whole catches it."""

KEY = b"slow-clients-know-the-key-all-the-same-000000000"
HEAD = (
    b"Host: localhost\r\nX-API-Key: "
    + KEY
    + b"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
)
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Connection]]


@pytest.fixture(autouse=True)
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "HEADER_SECONDS", DEADLINE)
    monkeypatch.setattr(asgi, "BODY_SECONDS", DEADLINE)


@contextlib.asynccontextmanager
async def proxy(home: Path) -> AsyncIterator[Connect]:
    """A whole proxy, and a way to connect to it."""
    config = home / "mcp_config.json"
    config.write_text(json.dumps({"api_key": KEY.decode()}))
    app = App(load(config), home, Masker())
    opened = listen.open_socket("127.0.0.1:0")
    port = opened.getsockname()[1]
    stopping = asyncio.Event()
    async with app.running():
        check = listen.HostCheck(app, lambda: app.config)
        serving = asyncio.create_task(listen.serve_http(check, [opened], lambda: 0, stopping))
        try:
            yield lambda: asyncio.open_connection("127.0.0.1", port)
        finally:
            stopping.set()
            await serving


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send byte for byte, for ever behind the deadline, until the other side has enough."""
    with contextlib.suppress(ConnectionError):
        for byte in data:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(SLOW)


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All that still comes until the other side closes."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


async def answered(connection: Connection, request: bytes) -> bytes:
    """The status line of the answer to a request."""
    reader, writer = connection
    writer.write(request)
    async with asyncio.timeout(PATIENCE):
        return await reader.readline()


def a_request(length: int, body: bytes = b"", path: bytes = b"/mcp") -> bytes:
    return b"POST " + path + b" HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % length + body


def run(home: Path, scenario: Callable[[Connect], Awaitable[None]]) -> None:
    async def main() -> None:
        async with proxy(home) as connect:
            await scenario(connect)
            # Whatever the slow ones did, others are served.
            status = await answered(await connect(), b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status.startswith(b"HTTP/1.1 200")

    asyncio.run(main())


def test_a_connection_on_which_nothing_comes_is_closed(tmp_path: Path) -> None:
    async def scenario(connect: Connect) -> None:
        silent = [await connect() for _ in range(50)]
        assert await asyncio.gather(*(rest(reader) for reader, _ in silent)) == [b""] * 50

    run(tmp_path, scenario)


def test_headers_that_trickle_are_cut_off(tmp_path: Path) -> None:
    async def scenario(connect: Connect) -> None:
        reader, writer = await connect()
        sending = asyncio.create_task(drip(writer, b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"z" * 10_000))
        assert await rest(reader) == b""
        await sending

    run(tmp_path, scenario)


def test_headers_of_a_later_request_are_bounded_too(tmp_path: Path) -> None:
    async def scenario(connect: Connect) -> None:
        reader, writer = connection = await connect()
        status = await answered(connection, a_request(len(PING), PING))
        assert status.startswith(b"HTTP/1.1 200")
        sending = asyncio.create_task(drip(writer, b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"z" * 10_000))
        assert b"HTTP/1.1" not in await rest(reader)
        await sending

    run(tmp_path, scenario)


@pytest.mark.parametrize("path", [b"/mcp", b"/api/v1/servers"])
@pytest.mark.parametrize("sent", [b"", b'{"name'])
def test_a_body_that_never_ends_is_answered_408(tmp_path: Path, path: bytes, sent: bytes) -> None:
    async def scenario(connect: Connect) -> None:
        status = await answered(await connect(), a_request(1000, sent, path))
        assert status.startswith(b"HTTP/1.1 408")

    run(tmp_path, scenario)


def test_a_body_that_trickles_is_answered_408(tmp_path: Path) -> None:
    async def scenario(connect: Connect) -> None:
        connection = await connect()
        connection[1].write(a_request(10_000))
        sending = asyncio.create_task(drip(connection[1], b" " * 10_000))
        assert (await answered(connection, b"")).startswith(b"HTTP/1.1 408")
        sending.cancel()

    run(tmp_path, scenario)


def test_a_client_that_listens_for_long_is_not_cut_off(tmp_path: Path) -> None:
    info = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"slow","version":"1"}}'
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + info + b"}"

    async def scenario(connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(a_request(len(hello), hello))
        answer = await reader.readuntil(b"\r\n\r\n")
        (session,) = [line for line in answer.splitlines() if line.lower().startswith(b"mcp-session-id")]
        listening, writer = await connect()
        writer.write(b"GET /mcp HTTP/1.1\r\n" + HEAD + session + b"\r\n\r\n")
        assert (await listening.readline()).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(3 * DEADLINE)
        assert not listening.at_eof()

    run(tmp_path, scenario)
