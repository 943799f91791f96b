"""A corpus of what no client should send: bodies, whole HTTP messages, and lines on stdin."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.fuzz.bodies import DEEP, NUMBERS, OTHERS, TEXTS

BYTES = [b"\xff\xfe", b"\xef\xbb\xbf{}", b"\0", b"\xed\xa0\x80", b'{"a":"\xc3"}', bytes(range(256)), b"[" * 300_000]
ODD = [*NUMBERS, *TEXTS, *OTHERS, *DEEP]
CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":%s}}'


def bodies() -> Iterator[bytes]:
    """Odd values alone, and where a value belongs."""
    for odd in ODD:
        yield odd.encode()
        yield (CALL % odd).encode()
        yield b'{"name":"good:echo","variant":"read","arguments":%s}' % odd.encode()
    yield from BYTES


GET = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
HTTP_GARBAGE = [
    b"\0" * 1000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200,  # somebody speaks TLS
    b"GET / HTTP/9.9\r\n\r\n",
    GET + b"Host: evil.example\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\n\r\n",
    b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    GET + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
    POST + b"Content-Length: -1\r\n\r\n{}",
    POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    POST + b"Content-Length: 5\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}",
    POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    POST + b"Content-Length: 1000\r\n\r\n{",
    b"GET /api/v1/activity/%ff%00%0d%0a HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /ui/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
]

_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
LINES = [
    json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO}).encode() + b"\n",
    *(body.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for body in bodies()),
    json.dumps({"jsonrpc": "2.0", "id": "last", "method": "ping"}).encode() + b"\n",
]
