"""How does one caller speak? Over streamable HTTP, over the older event stream, or over the pipes of a child.

Each is a small state machine on raw descriptors for one loop (load.py), so that the load costs a fraction of what it
measures. Handshakes block; calls do not.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

PATIENCE = 30.0
"""How long an answer may take, in seconds."""
FIRST_ID = 1_000_000
"""Ids have one length, so that a request's length is known."""
_PIPE_BYTES = 1 << 20
_RECEIVE = 1 << 18
_VERSION = "2025-11-25"
_HANDSHAKE = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class WrongAnswer(Exception):
    """What came back is not the tool's result."""


class Job(Struct, frozen=True):
    """What is called, and what an answer must be like."""

    method: str
    params: str
    """A JSON object with something in it."""
    least: int
    """How many bytes a result has at the least: one that was cut is not the same work."""
    sign: bytes
    """What stands in every right answer."""
    progress: bool = False

    def request(self) -> tuple[bytes, bytes]:
        """What stands before and after a request's id."""
        token = ',"_meta":{"progressToken":%d}' if self.progress else ""
        params = f"{self.params.removesuffix('}')}{token}}}"
        return b'{"jsonrpc":"2.0","id":', f',"method":"{self.method}","params":{params}}}'.encode()

    def body(self, number: int) -> bytes:
        """The request with this id."""
        head, tail = self.request()
        return b"%s%d%s" % (head, number, tail % number if self.progress else tail)

    def check(self, answer: bytes | bytearray) -> None:
        """Raise unless it is a whole result."""
        if len(answer) < self.least or self.sign not in answer or b'"isError":true' in answer[-400:]:
            raise WrongAnswer(f"not the result: {bytes(answer[:300])!r}")


class Caller(Protocol):
    """Whatever the loop can drive: one or many callers behind one descriptor."""

    def fileno(self) -> int: ...

    def prepare(self, job: Job) -> None:
        """Connect afresh for this job: a server closes a connection that idles (Node after 5 s)."""

    def ask(self) -> int:
        """Send one call; returns its id."""

    def read(self) -> Iterator[int]:
        """Take what has arrived; the ids of the calls that are answered."""

    def close(self) -> None:
        """End the session."""


class Answer:
    """An HTTP answer while it arrives."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._body = 0
        self._end = 0
        """Where it ends; 0 while its head is not there, -1 where the last chunk says so."""

    def add(self, data: bytes) -> bool:
        """Take more; True once it is complete."""
        self.data += data
        if self._end == 0:
            self._body = self.data.find(b"\r\n\r\n") + 4
            if self._body < 4:
                return False
            self._end = self._find_end(bytes(self.data[: self._body]).lower())
        return self.data.endswith(b"\r\n0\r\n\r\n") if self._end < 0 else len(self.data) >= self._end

    def _find_end(self, head: bytes) -> int:
        at = head.find(b"content-length:")
        if at > 0:
            return self._body + int(head[at + 15 : head.index(b"\r\n", at)])
        # Our messages end in braces and newlines, so this can only be the last chunk.
        return -1 if b"chunked" in head else self._body

    @property
    def status(self) -> int:
        """The status code."""
        return int(self.data[9:12])

    def header(self, name: bytes) -> str | None:
        """One header of it."""
        for line in bytes(self.data[: self._body]).split(b"\r\n"):
            if line.lower().startswith(name + b":"):
                return line[len(name) + 1 :].strip().decode()
        return None


class Http:
    """One connection with one session of streamable HTTP."""

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port or 80, parts.path
        self._extra = f"Authorization: Bearer {key}\r\n" if key else ""
        self._socket = _connected(self._host, self._port)
        self._answer = Answer()
        self._last = FIRST_ID
        answer = self._post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HANDSHAKE})
        if answer.status != 200:
            raise WrongAnswer(f"no handshake: {bytes(answer.data[:300])!r}")
        session = answer.header(b"mcp-session-id")
        self._extra += (f"Mcp-Session-Id: {session}\r\n" if session else "") + f"MCP-Protocol-Version: {_VERSION}\r\n"
        self._exchange("POST", _INITIALIZED)

    def prepare(self, job: Job) -> None:
        self._job = job
        head, self._tail = job.request()
        self._head = self._framed("POST", job.body(FIRST_ID)).partition(head)[0] + head
        self._socket.close()
        self._socket = _connected(self._host, self._port)
        self._socket.settimeout(None)  # the loop asks only when something is there; this saves a system call

    def _framed(self, method: str, body: bytes) -> bytes:
        head = (
            f"{method} {self._path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n{self._extra}"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def _post(self, message: dict[str, object]) -> Answer:
        return self._exchange("POST", json.dumps(message).encode())

    def _exchange(self, method: str, body: bytes) -> Answer:
        self._socket.settimeout(PATIENCE)
        self._socket.sendall(self._framed(method, body))
        answer = Answer()
        while not answer.add(_received(self._socket)):
            pass
        return answer

    def fileno(self) -> int:
        return self._socket.fileno()

    def ask(self) -> int:
        self._last += 1
        tail = self._tail % self._last if self._job.progress else self._tail
        self._socket.sendall(b"%s%d%s" % (self._head, self._last, tail))
        return self._last

    def read(self) -> Iterator[int]:
        if self._answer.add(_received(self._socket)):
            answer, self._answer = self._answer, Answer()
            self._job.check(answer.data)
            yield self._last

    def close(self) -> None:
        with contextlib.suppress(OSError, WrongAnswer):
            self._exchange("DELETE", b"")
        self._socket.close()


class Sse:
    """One session of the older transport: an event stream, and a connection for what is said to the server."""

    def __init__(self, url: str, key: str = "") -> None:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        self._place = (host, port)
        self._host = f"Host: {host}:{port}\r\n"
        self._stream, self._socket = _connected(host, port), _connected(host, port)
        self._stream.settimeout(PATIENCE)
        self._stream.sendall(
            f"GET {parts.path} HTTP/1.1\r\n{self._host}Accept: text/event-stream\r\n\r\n".encode(),
        )
        self._got = bytearray()
        self._posted = Answer()
        self._last = FIRST_ID
        self._path = self._event(b"event: endpoint").partition("data: ")[2].split()[0]
        self._say(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HANDSHAKE}).encode())
        self._event(b'"id":0')
        self._say(_INITIALIZED)
        self._stream.settimeout(None)

    def prepare(self, job: Job) -> None:
        self._job = job
        self._socket.close()
        self._socket = _connected(*self._place)
        self._socket.settimeout(None)

    def _event(self, sign: bytes) -> str:
        while sign not in self._got or not self._got.endswith(b"\n\n\r\n"):
            self._got += _received(self._stream)
        found = bytes(self._got).decode()
        self._got.clear()
        return found

    def _say(self, body: bytes) -> None:
        self._socket.sendall(self._framed(body))
        while not self._posted.add(_received(self._socket)):
            pass
        if self._posted.status >= 300:
            raise WrongAnswer(f"refused: {bytes(self._posted.data[:300])!r}")
        self._posted = Answer()

    def _framed(self, body: bytes) -> bytes:
        head = f"POST {self._path} HTTP/1.1\r\n{self._host}Content-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def fileno(self) -> int:
        return self._stream.fileno()

    def ask(self) -> int:
        self._last += 1
        self._socket.sendall(self._framed(self._job.body(self._last)))
        return self._last

    def read(self) -> Iterator[int]:
        self._got += _received(self._stream)
        if self._got.endswith(b"\n\n\r\n") and b'"id":%d' % self._last in self._got:
            self._job.check(self._got)
            self._got.clear()
            # The "202 Accepted" to the request has long been sent: its answer has come.
            while not self._posted.add(_received(self._socket)):
                pass
            self._posted = Answer()
            yield self._last

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


class Stdio:
    """A child and its pipes, shared by all callers: that is what a stdio server's client does."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        for pipe in (self._in, self._out):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._got: list[bytes] = []
        self._last = FIRST_ID
        self._write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HANDSHAKE}).encode())
        while not list(self._lines()):
            pass
        self._write(_INITIALIZED)

    def prepare(self, job: Job) -> None:
        self._job = job

    def _write(self, message: bytes) -> None:
        os.write(self._in, message + b"\n")

    def _lines(self) -> Iterator[bytes]:
        data = os.read(self._out, _PIPE_BYTES)
        if not data:
            raise WrongAnswer("the child closed its stdout")
        if b"\n" not in data:
            self._got.append(data)
            return
        *lines, rest = data.split(b"\n")
        lines[0] = b"".join((*self._got, lines[0]))
        self._got = [rest] if rest else []
        yield from lines

    def fileno(self) -> int:
        return self._out

    def ask(self) -> int:
        self._last += 1
        self._write(self._job.body(self._last))
        return self._last

    def read(self) -> Iterator[int]:
        for line in self._lines():
            if line.find(b'"method":', 0, 100) > 0:  # a notification
                continue
            at = line.find(b'"id":', 0, 100)
            if at < 0:
                at = line.rfind(b'"id":')
            self._job.check(line)
            yield int(line[at + 5 : at + 12])

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def _connected(host: str, port: int) -> socket.socket:
    opened = socket.create_connection((host, port), PATIENCE)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _received(opened: socket.socket) -> bytes:
    data = opened.recv(_RECEIVE)
    if not data:
        raise WrongAnswer("the connection was closed")
    return data
