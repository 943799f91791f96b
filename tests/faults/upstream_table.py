"""Which faults may an upstream have? One row each: what it does, and what the agent that called it is told."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tests.support.children import b64

Transport = Literal["stdio", "http"]
BIG = 100_000_000
LINE = b'{"jsonrpc":"2.0","id":$ID,"result":'
STRANGE = b'{"jsonrpc":"2.0","id":$ID000,"result":{}}'
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'


class Fault(NamedTuple):
    """One fault over one transport: the call that brings it about, and what comes of that."""

    name: str
    transport: Transport
    tool: str
    arguments: dict[str, Any]
    code: str | None
    """What the agent is told; None where the call is answered all the same."""
    says: str
    """A pattern of the error's message; of the answer, where it is answered."""
    ends: bool = False
    """Whether it costs a stdio server its process: another is there afterwards."""
    act: Literal["stop", "kill", "start"] | None = None
    """Done to the server's process: it is stopped for the call, killed after it, or started again after it."""

    @property
    def server(self) -> str:
        """The server to call. Where the fault shows only at the deadline, it is one whose deadline is near."""
        return f"{'hasty' if self.code == 'TIMEOUT' else 'bad'}-{self.transport}"

    @property
    def large(self) -> bool:
        """Whether more comes than should ever be held."""
        return self.arguments.get("size") == BIG or self.tool == "many"

    @property
    def id(self) -> str:
        """A name for the test."""
        return f"{self.transport}-{self.name.replace(' ', '-')}"


def _stdio(name: str, tool: str, code: str | None, says: str, *, ends: bool = False, **arguments: Any) -> Fault:
    return Fault(name, "stdio", tool, arguments, code, says, ends)


def _http(name: str, tool: str, code: str | None, says: str, **arguments: Any) -> Fault:
    return Fault(name, "http", tool, arguments, code, says)


_GONE, _BROKEN, _LATE, _LARGE = "UPSTREAM_UNAVAILABLE", "UPSTREAM_INVALID", "TIMEOUT", "RESULT_TOO_LARGE"
_DEADLINE = r"did not answer within [\d.]+ s; the call was cancelled there"
_OVER = r"sent a result larger than max_result_bytes \(\d+ bytes\)"
_UNUSABLE = "sent an answer that cannot be used: "
_JUNK = "more than 16777216 bytes (to stdout|of events) that are no answer"

STDIO = (
    _stdio("crashes", "die", _GONE, "the process exited with code 3", ends=True),
    _stdio("hangs", "never", _LATE, _DEADLINE),
    Fault("is stopped", "stdio", "echo", {}, _LATE, _DEADLINE, act="stop"),
    _stdio("floods stderr", "flood", None, "flooded", data=b64(b"complaint " * 10 + b"\n"), size=BIG, fd=2),
    _stdio("floods stderr with empty lines", "flood", None, "flooded", data=b64(b"\n"), size=BIG // 10, fd=2),
    _stdio("floods stdout", "flood", _GONE, _JUNK, ends=True, data=b64(b"junk " * 20 + b"\n"), size=BIG),
    _stdio("floods stdout with empty lines", "flood", _GONE, _JUNK, ends=True, data=b64(b"\n"), size=BIG),
    _stdio("floods stdout with notices", "flood", _GONE, _JUNK, ends=True, data=b64(NOTICE + b"\n"), size=BIG),
    _stdio("floods stdout with braces", "flood", _GONE, _JUNK, ends=True, data=b64(b"{\n"), size=BIG),
    _stdio("sends a line of 100 MB", "big", _LARGE, _OVER, size=BIG),
    _stdio("sends a line of 100 MB that ends in its id", "big", _LARGE, _OVER, size=BIG, id_last=True),
    _stdio("sends half JSON", "raw", _BROKEN, _UNUSABLE, data=b64(LINE + b'{"content":[\n')),
    _stdio("sends half JSON and no newline", "raw", _LATE, _DEADLINE, data=b64(LINE + b'{"content":[')),
    _stdio("answers with a wrong id", "raw", _LATE, _DEADLINE, data=b64(STRANGE + b"\n")),
    _stdio("answers twice", "raw", None, '"n": ?1', data=b64((LINE + b'{"structuredContent":{"n":1}}}\n') * 2)),
    _stdio("answers with a list", "raw", _BROKEN, _UNUSABLE, data=b64(LINE + b"[1,2]}\n")),
    _stdio("answers with neither", "raw", _BROKEN, _UNUSABLE, data=b64(b'{"jsonrpc":"2.0","id":$ID}\n')),
    _stdio("answers with a wrong isError", "raw", _BROKEN, _UNUSABLE, data=b64(LINE + b'{"isError":"yes"}}\n')),
    _stdio("answers with nests", "raw", _BROKEN, _UNUSABLE, data=b64(LINE + b"[" * 5000 + b"]" * 5000 + b"}\n")),
    _stdio("answers with an error", "raw", _BROKEN, r"answered with an error: no \(7\)",
           data=b64(b'{"jsonrpc":"2.0","id":$ID,"error":{"code":7,"message":"no"}}\n')),
    _stdio("dies half-way", "die", _GONE, "the process exited with code 3", ends=True, data=b64(LINE + b'{"con')),
    _stdio("closes its stdout", "close_stdout", _GONE, "it closed its stdout", ends=True),
    _stdio("answers after the timeout", "late", _LATE, _DEADLINE, seconds=1),
    Fault("leaves a child", "stdio", "grandchild", {}, None, "pid", ends=True, act="kill"),
    Fault("leaves a child apart", "stdio", "grandchild", {"apart": True}, None, "pid", ends=True, act="kill"),
)  # fmt: skip

HTTP = (
    Fault("crashes", "http", "die", {}, _GONE, "the connection broke|cannot reach", act="start"),
    _http("hangs", "never", _LATE, _DEADLINE),
    Fault("is stopped", "http", "echo", {}, _LATE, _DEADLINE, act="stop"),
    _http("floods with comments", "flood", _GONE, _JUNK, data=b64(b": still here\n")),
    _http("floods with empty lines", "flood", _GONE, _JUNK, data=b64(b"\n")),
    _http("floods with notices", "flood", _GONE, _JUNK, data=b64(b"data: " + NOTICE + b"\n\n")),
    _http("floods with lines of data", "flood", _LARGE, _OVER, data=b64(b"data:\n")),
    _http("sends a line of 100 MB", "big", _LARGE, _OVER, size=BIG),
    _http("sends an event of 100 MB", "big", _LARGE, _OVER, size=BIG, streamed=True),
    _http("says that 100 MB will come", "told", _LARGE, _OVER, size=BIG),
    _http("sends half JSON", "raw", _BROKEN, _UNUSABLE, data=b64(LINE + b'{"content":[')),
    _http("answers with a wrong id", "raw", _BROKEN, _UNUSABLE, data=b64(STRANGE)),
    _http("streams a wrong id", "raw", _GONE, "the stream ended before the answer came", streamed=True,
          data=b64(b"data: " + STRANGE + b"\n\n")),
    _http("answers twice", "twice", None, '"n": ?1', n=1),
    _http("streams its answer twice", "twice", None, '"n": ?1', n=1, streamed=True),
    _http("answers with a list", "raw", _BROKEN, _UNUSABLE, data=b64(LINE + b"[1,2]}")),
    _http("answers with a wrong isError", "raw", _BROKEN, _UNUSABLE, data=b64(LINE + b'{"isError":"yes"}}')),
    _http("answers with masses of blocks", "many", None, '"n": ?1', of="blocks"),
    _http("answers with masses of blocks and a text", "many", _BROKEN, "more than 10000 content blocks", of="text"),
    _http("answers with masses of members", "many", _BROKEN, "more than 1000 members", of="members"),
    _http("answers with a page", "html", _BROKEN, "the answer's content type is 'text/html'", status=200),
    _http("answers with a fault", "html", _GONE, "HTTP 502: <html>Bad gateway", status=502),
    _http("redirects", "redirect", _GONE, "HTTP 307: it redirects to http://.*/mcp/elsewhere", status=307),
    _http("closes half-way", "half", _GONE, "the connection broke: the answer ended half-way"),
    _http("closes a stream half-way", "half", _GONE, "the connection broke: the answer ended half-way", streamed=True),
    _http("answers after the timeout", "late", _LATE, _DEADLINE, seconds=1),
)  # fmt: skip

FAULTS = STDIO + HTTP
