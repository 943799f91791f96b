"""How does the browser's answer come back where no daemon listens? To a port on this machine, open for one login."""

from __future__ import annotations

import asyncio
import contextlib
import html
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from mcpproxy.upstream.oauth.errors import LoginFailed

PATH = "/oauth/callback"

_PATIENCE = 5.0
_MAX_HEAD = 16_384

Deliver = Callable[[Mapping[str, str]], Awaitable[None]]


def page(failure: str | None) -> str:
    """What the person sees in the browser at the end of a login."""
    title = "You are logged in" if failure is None else "The login failed"
    text = "You can close this window." if failure is None else failure
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>mcpproxy</title></head>'
        f"<body><h1>{title}</h1><p>{html.escape(text)}</p></body></html>"
    )


@contextlib.asynccontextmanager
async def listening(deliver: Deliver, address: str | None = None) -> AsyncIterator[str]:
    """Listen for the browser, at any free port or at the http address given; gives the redirect URI."""
    wanted = urlsplit(address or f"http://127.0.0.1:0{PATH}")
    visits: set[asyncio.Task[None]] = set()

    def on_visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.create_task(_visit(reader, writer, wanted.path or "/", deliver))
        visits.add(visit)
        visit.add_done_callback(visits.discard)

    port = wanted.port if wanted.port is not None else 80
    try:
        server = await asyncio.start_server(on_visit, "127.0.0.1", port, limit=_MAX_HEAD)
    except OSError as error:
        raise LoginFailed(f"cannot listen on 127.0.0.1:{port} for the browser: {error.strerror or error}") from None
    try:
        yield address or f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
    finally:
        server.close()
        if visits:  # the browser is still to be told how it ended
            await asyncio.wait(visits, timeout=_PATIENCE)
        for visit in visits:
            visit.cancel()


async def _visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, deliver: Deliver) -> None:
    try:
        status, failure = await _heard(reader, path, deliver)
        writer.write(_response(status, page(failure)))
        await writer.drain()
    except OSError:
        pass  # the browser is gone, and nobody else waits for the page
    finally:
        writer.close()


async def _heard(reader: asyncio.StreamReader, path: str, deliver: Deliver) -> tuple[HTTPStatus, str | None]:
    try:
        async with asyncio.timeout(_PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = head.partition(b"\r\n")[0].decode("ascii").partition(" ")
        target = urlsplit(rest.partition(" ")[0])
    except (TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return HTTPStatus.BAD_REQUEST, "This is not a browser's question."
    if method != "GET" or target.path != path:
        return HTTPStatus.NOT_FOUND, "There is nothing here."
    try:
        await deliver(dict(parse_qsl(target.query)))
    except LoginFailed as error:
        return HTTPStatus.BAD_REQUEST, str(error)
    return HTTPStatus.OK, None


def _response(status: HTTPStatus, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Content-Security-Policy: default-src 'none'",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body
