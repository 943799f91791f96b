"""What may a client cost that sends next to nothing, slowly? A connection for a while, and nobody else anything."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.calls.proxy import Proxy, running
from tests.faults.clients import a_request, connect, is_served, rest, status

from mcpproxy import asgi, http1

DEADLINE = 0.4
SLOW = 0.05
"""How long a slow client pauses: often enough within the deadline that only a deadline for the whole catches it."""

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
INFO = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"slow","version":"1"}}'
HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + INFO + b"}"


@pytest.fixture(autouse=True)
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "HEADER_SECONDS", DEADLINE)
    monkeypatch.setattr(asgi, "BODY_SECONDS", DEADLINE)


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send byte for byte, for ever behind the deadline, until the other side has enough."""
    with contextlib.suppress(ConnectionError):
        for byte in data:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(SLOW)


def run(home: Path, scenario: Callable[[Proxy], Awaitable[None]]) -> None:
    async def main() -> None:
        async with running(home) as proxy:
            await scenario(proxy)
            assert await is_served(proxy.url)

    asyncio.run(main())


def test_a_connection_on_which_nothing_comes_is_closed(tmp_path: Path) -> None:
    async def scenario(proxy: Proxy) -> None:
        silent = [await connect(proxy.url) for _ in range(50)]
        assert await asyncio.gather(*(rest(reader) for reader, _ in silent)) == [b""] * 50

    run(tmp_path, scenario)


def test_headers_that_trickle_are_cut_off(tmp_path: Path) -> None:
    async def scenario(proxy: Proxy) -> None:
        reader, writer = await connect(proxy.url)
        sending = asyncio.create_task(drip(writer, b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"z" * 10_000))
        assert await rest(reader) == b""
        await sending

    run(tmp_path, scenario)


def test_headers_of_a_later_request_are_bounded_too(tmp_path: Path) -> None:
    async def scenario(proxy: Proxy) -> None:
        reader, writer = connection = await connect(proxy.url)
        assert await status(connection, a_request(PING)) == 200
        sending = asyncio.create_task(drip(writer, b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"z" * 10_000))
        assert b"HTTP/1.1" not in await rest(reader)
        await sending

    run(tmp_path, scenario)


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/servers"])
@pytest.mark.parametrize("sent", [b"", b'{"name'])
def test_a_body_that_never_ends_is_answered_408(tmp_path: Path, path: str, sent: bytes) -> None:
    async def scenario(proxy: Proxy) -> None:
        assert await status(await connect(proxy.url), a_request(sent, path=path, length=1000)) == 408

    run(tmp_path, scenario)


def test_a_body_that_trickles_is_answered_408(tmp_path: Path) -> None:
    async def scenario(proxy: Proxy) -> None:
        connection = await connect(proxy.url)
        connection[1].write(a_request(b"", length=10_000))
        sending = asyncio.create_task(drip(connection[1], b" " * 10_000))
        assert await status(connection) == 408
        sending.cancel()

    run(tmp_path, scenario)


def test_a_client_that_listens_for_long_is_not_cut_off(tmp_path: Path) -> None:
    async def scenario(proxy: Proxy) -> None:
        reader, writer = await connect(proxy.url)
        writer.write(a_request(HELLO))
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        (session,) = (line for line in answer.splitlines() if line.lower().startswith("mcp-session-id"))
        named = {"Mcp-Session-Id": session.partition(": ")[2]}
        listening = await connect(proxy.url)
        assert await status(listening, a_request(b"", named, method="GET")) == 200
        await asyncio.sleep(3 * DEADLINE)
        assert not listening[0].at_eof()

    run(tmp_path, scenario)
