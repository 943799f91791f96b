"""An HTTP client that sends the very bytes it is given, on one connection for as long as that lasts."""

from __future__ import annotations

import contextlib
import http.client
import socket
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    """What came back; status 0 where the connection was closed without a word."""

    status: int
    session: str | None
    messages: list[bytes]
    """The bodies of its events, or its one body."""


class RawHttp:
    """One client of a local HTTP server."""

    def __init__(self, url: str) -> None:
        self._port = urlsplit(url).port
        self._socket: socket.socket | None = None

    def post(self, path: str, head: list[tuple[bytes, bytes]], body: bytes) -> Answer:
        """Post a body under these headers."""
        lines = [b"POST %s HTTP/1.1" % path.encode(), b"Host: localhost", b"Content-Length: %d" % len(body)]
        lines += [name + b": " + value for name, value in head]
        return self._exchange(b"\r\n".join(lines) + b"\r\n\r\n" + body)

    def _exchange(self, request: bytes) -> Answer:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        response = http.client.HTTPResponse(self._socket)
        try:
            self._socket.sendall(request)
            response.begin()
            body = response.read()
        except (http.client.BadStatusLine, ConnectionError):
            self.close()
            return Answer(0, None, [])
        finally:
            response.close()
        if response.will_close:
            self.close()
        session = response.getheader("mcp-session-id")
        if response.getheader("content-type", "").startswith("text/event-stream"):
            lines = body.replace(b"\r\n", b"\n").split(b"\n")
            return Answer(response.status, session, [line[6:] for line in lines if line.startswith(b"data: ")])
        return Answer(response.status, session, [body])

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.close()
        self._socket = None
