"""What may come in over one connection? Whole talks in raw bytes, segment by segment, plain ones and twisted ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.agent.wire_client import ACCEPT
from tests.calls.proxy import KEY

POST = "POST /mcp HTTP/1.1"
PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BYE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SLOW = '{"name":"echo:slow","args":{"steps":3,"pause":0.01}}'


class Talk(NamedTuple):
    """All that a client sends, and how many of its requests take the short way.

    None: it sends without waiting for answers, and so it depends on what has come by when.
    """

    about: str
    taken: int | None
    segments: list[bytes]


def body_of(arguments: str = '{"name":"echo:plain"}', *, more: str = "", request_id: int = 1) -> str:
    """A call of `call_tool_read`."""
    params = f'{{"name":"call_tool_read","arguments":{arguments}{more}}}'
    return f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call","params":{params}}}'


class Requests:
    """Makes the requests of one session."""

    def __init__(self, session: str) -> None:
        self._named = {
            "Host": "localhost",
            "X-API-Key": KEY,
            "Content-Type": "application/json",
            "Accept": ACCEPT,
            "MCP-Protocol-Version": "2025-11-25",
            "Mcp-Session-Id": session,
        }

    def head(self, length: int | str, *lines: str, start: str = POST, without: str = "", **named: str) -> bytes:
        """A head with these lines besides the usual ones."""
        usual = {**self._named, "Content-Length": str(length)}
        usual.update({name.replace("_", "-"): value for name, value in named.items()})
        given = [f"{name}: {value}" for name, value in usual.items() if name != without]
        return "".join(f"{line}\r\n" for line in (start, *given, *lines, "")).encode("latin-1")

    def whole(self, *lines: str, body: str | None = None, start: str = POST, without: str = "", **named: str) -> bytes:
        """A whole request."""
        content = (body_of() if body is None else body).encode()
        return self.head(len(content), *lines, start=start, without=without, **named) + content

    def talks(self) -> Iterator[Talk]:
        """Every talk; the proxy closes the connection at the end of each, and no sooner."""
        yield from self._in_segments()
        yield from self._in_heads()
        yield from self._refused()

    def _in_segments(self) -> Iterator[Talk]:
        plain, head, body = self.whole(), self.head(len(body_of())), body_of().encode()
        long = body_of(f'{{"name":"echo:reads","args":{{"x":"{"y" * 100_000}"}}}}').encode()
        slow, reporting = body_of(SLOW), body_of(SLOW, more=',"_meta":{"progressToken":"mine"}')
        yield Talk("one", 1, [plain, BYE])
        yield Talk("three in turn", 3, [plain, plain, plain, BYE])
        yield Talk("two at once", 0, [plain + plain, BYE])
        yield Talk("twenty at once", 0, [plain * 20, BYE])
        yield Talk("one, then two at once", 1, [plain, plain + plain, BYE])
        yield Talk("a call and a look at once", 0, [plain + HEALTH, BYE])
        yield Talk("a look and a call at once", 0, [HEALTH + plain, BYE])
        yield Talk("a look, then a call", 1, [HEALTH, plain, BYE])
        yield Talk("a call and the last look at once", 0, [plain + BYE])
        yield Talk("head and body apart", 1, [head, body, BYE])
        yield Talk("the body in bytes", 1, [head, *(body[at : at + 1] for at in range(9)), body[9:], BYE])
        yield Talk("part of the body with the head", 1, [plain[:-7], plain[-7:], BYE])
        yield Talk("the head in two", 0, [head[:60], head[60:] + body, BYE])
        yield Talk("the first line in two", 0, [plain[:9], plain[9:], BYE])
        yield Talk("the end of the head in two", 0, [head[:-1], head[-1:] + body, BYE])
        yield Talk("the next one with the body", 0, [head, body + plain[:30], plain[30:], BYE])
        yield Talk("the next one behind its beginning", 1, [plain, plain[:30], plain[30:], BYE])
        yield Talk("a long body", 1, [self.head(len(long)), long[:50_000], long[50_000:], BYE])
        yield Talk("empty lines before", 0, [b"\r\n\r\n" + plain, BYE])
        yield Talk("an empty line, then a call", 1, [b"\r\n", plain, BYE])
        yield Talk("an empty line behind", 0, [plain + b"\r\n", BYE])
        yield Talk("a slow one, and more behind it", None, [self.whole(body=slow), plain, BYE])
        yield Talk("a slow one, and others behind it", None, [self.whole(body=slow), HEALTH, plain, plain, BYE])
        yield Talk("a slow one, and part of one behind it", None, [self.whole(body=slow), plain[:-7], plain[-7:], BYE])
        yield Talk("a slow one the long way, a call behind it", None, [HEALTH + self.whole(body=slow), plain, BYE])
        yield Talk("progress", 2, [self.whole(body=reporting), self.whole(body=reporting), BYE])
        yield Talk("not a call", 1, [self.whole(body=PING), plain, BYE])
        yield Talk("no JSON", 1, [self.whole(body="{"), plain, BYE])
        yield Talk("no body", 1, [self.whole(body=""), plain, BYE])
        yield Talk("an upstream's error", 1, [self.whole(body=body_of('{"name":"echo:rpc_error"}')), BYE])

    def _in_heads(self) -> Iterator[Talk]:
        plain, body, length = self.whole(), body_of(), len(body_of())
        start, end = plain.split(b"\r\n", 1)
        yield Talk("names in any case", 1, [plain.replace(b"Content-Length", b"cONTENT-lENGTH"), BYE])
        yield Talk("no space before a value", 1, [plain.replace(b"Host: ", b"Host:"), BYE])
        yield Talk("many spaces before a value", 0, [plain.replace(b"Host: ", b"Host: \t "), BYE])
        yield Talk("spaces behind a value", 0, [plain.replace(b"localhost", b"localhost  "), BYE])
        yield Talk("an empty value", 0, [self.whole("X-Empty:"), BYE])
        yield Talk("a value in Latin", 0, [self.whole("X-Name: \xe9"), BYE])
        yield Talk("an unusual name", 0, [self.whole("X_Name: 1"), BYE])
        yield Talk("a long head", 0, [self.whole(f"X-Long: {'x' * 9000}"), BYE])
        yield Talk("zeros before the length", 1, [self.head(f"00{length}") + body.encode(), BYE])
        yield Talk("keep-alive", 1, [self.whole("Connection: Keep-Alive"), BYE])
        for close in ("Connection: close", "Proxy-Connection: close", "Connection: keep-alive, close"):
            yield Talk(close, 0, [self.whole(close)])
        yield Talk("close and keep-alive", 0, [self.whole("Connection: close", "Connection: keep-alive")])
        yield Talk("an old version", 0, [self.whole(start="POST /mcp HTTP/1.0")])
        yield Talk("continue", 0, [self.head(length, "Expect: 100-continue"), body.encode(), BYE])
        for target in ("http://localhost/mcp", "/mcp/", "/mcp?a=1", "/%6dcp"):
            yield Talk(target, 0, [self.whole(start=f"POST {target} HTTP/1.1"), BYE])
        chunked = self.head(0, "Transfer-Encoding: chunked", without="Content-Length")
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (length, body.encode())
        yield Talk("chunked", 1, [chunked, chunks, plain, BYE])
        yield Talk("chunked, with a trailer", 1, [chunked, chunks[:-2] + b"Origin: null\r\n\r\n", plain, BYE])
        yield Talk("chunked, and a call behind it", 0, [chunked + chunks + plain, BYE])
        yield Talk("a call for a chunk", 0, [chunked, b"%x\r\n" % len(plain), plain, b"\r\n0\r\n\r\n", BYE])
        yield Talk("an upgrade", 1, [self.whole("Connection: upgrade", "Upgrade: h2c"), plain, BYE])
        yield Talk("a head within a body", 0, [self.whole(body=plain.decode()), BYE])
        yield Talk("chunked with a length", 0, [self.whole("Transfer-Encoding: chunked")])
        yield Talk("two lengths", 0, [self.whole(f"Content-Length: {length}")])
        yield Talk("two unlike lengths", 0, [self.whole("content-length: 0")])
        for wrong in ("+5", "-1", "5 5", "0x10", "5,5", "9" * 30, "1e2"):
            yield Talk(f"a length of {wrong}", 0, [self.head(wrong) + body.encode()])
        yield Talk("no length", 0, [self.head(0, "Connection: close", without="Content-Length")])
        for line in ("X-Folded: a\r\n b", "X-Nul: a\0b", "X-Name : a", "X Name: a", ": a", "X-Line: a\nX-Next: b", "X"):
            yield Talk(repr(line), 0, [self.whole(line)])
        yield Talk("bare line ends", 0, [start + b"\n" + end.replace(b"\r\n", b"\n")])
        yield Talk("two spaces in the first line", 0, [self.whole(start="POST  /mcp HTTP/1.1", Connection="close")])

    def _refused(self) -> Iterator[Talk]:
        plain = self.whole()
        lines = (
            "Host: localhost",
            "Host: evil.example",
            "Mcp-Session-Id: other",
            "Accept: text/html",
            f"X-API-Key: {KEY}x",
            "Origin: null",
            "Origin: http://evil.example",
            "Origin: http://[",
        )
        for line in lines:
            yield Talk(line, 1, [self.whole(line), plain, BYE])
        yield Talk("a page of this machine", 2, [self.whole("Origin: http://localhost:3000"), plain, BYE])
        yield Talk("both credentials", 2, [self.whole("Authorization: Basic eDp5"), plain, BYE])
        without = self.whole("Authorization: Basic eDp5", without="X-API-Key")
        yield Talk("a credential of another kind", 1, [without, plain, BYE])
        for name in ("Host", "X-API-Key", "Mcp-Session-Id", "MCP-Protocol-Version", "Accept", "Content-Type"):
            yield Talk(f"no {name}", 1, [self.whole(without=name), plain, BYE])
        yield Talk("another host", 1, [self.whole(Host="evil.example"), plain, BYE])
        yield Talk("another session", 1, [self.whole(Mcp_Session_Id="f" * 32), plain, BYE])
        yield Talk("too large", 0, [self.head(10**8, "Connection: close")])
