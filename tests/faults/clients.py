"""How does a client misbehave? With a bare connection, on which it sends and reads what and when it likes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from typing import Any

from tests.agent.wire_client import ACCEPT, WireClient
from tests.calls.proxy import KEY
from tests.support.children import command

PATIENCE = 60.0
"""For what must happen: long enough that only a hang reaches it."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def bad(*tools: str, **options: Any) -> dict[str, Any]:
    """The configuration of a server with these tools of `bad_server.py`."""
    program, *args = command(pages=[[{"name": tool, "inputSchema": {"type": "object"}} for tool in tools]], **options)
    return {"command": program, "args": args}


async def connect(url: str, *, window: int | None = None) -> Connection:
    """A bare connection; with a `window` the system takes only about so many bytes that nobody reads."""
    opened = socket.socket()
    if window is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    opened.setblocking(False)
    port = int(url.removesuffix("/mcp").rpartition(":")[2])
    await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=opened, limit=window or 2**16)


def a_request(
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    path: str = "/mcp",
    length: int | None = None,
) -> bytes:
    """A request of the holder of the key; its `length` may be a lie."""
    named = {
        "Host": "localhost",
        "X-API-Key": KEY,
        "Content-Type": "application/json",
        "Accept": ACCEPT,
        "Content-Length": str(len(body) if length is None else length),
        **(headers or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def a_call(client: WireClient, arguments: str, *, progress: str | None = None) -> bytes:
    """A call as this client would make it, for a bare connection."""
    body, more = client.request("call_tool_read", arguments, progress=progress)
    headers = {"Host": "localhost", "Content-Length": str(len(body)), **client.every, **more}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n{body}".encode()


async def status(connection: Connection, request: bytes = b"") -> int:
    """The status of the answer to a request; what follows it stays unread."""
    reader, writer = connection
    writer.write(request)
    async with asyncio.timeout(PATIENCE):
        return int((await reader.readline()).split()[1])


async def rest(reader: asyncio.StreamReader) -> bytes:
    """All that still comes until the other side closes."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


async def is_served(url: str) -> bool:
    """Whether somebody else gets an answer, whatever the others are doing."""
    connection = await connect(url)
    try:
        return await status(connection, a_request(b"", method="GET", path="/healthz")) == 200
    finally:
        connection[1].close()
