"""The smallest upstream: an MCP server on stdio, or over HTTP, that answers every call with the same bytes.

Standard library only, so that it starts and answers as fast as Python can. The tool declares an output schema and its
result carries the same text twice, as a modern server's does: as text for a person, and structured.
`upstream.py SIZE [PORT]`: the size of a result in bytes, and the port where it is to speak HTTP.
"""

import json
import select
import socket
import sys

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {
    "name": "echo",
    "description": "Answers.",
    "inputSchema": {"type": "object"},
    "outputSchema": SCHEMA,
    "annotations": {"readOnlyHint": True},
}
FRAME = 71
"""What a result has besides its text."""


def result(size: int) -> bytes:
    """A result of so many bytes."""
    text = "x" * max((size - FRAME) // 2, 8)
    found = {"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}}
    return json.dumps(found, separators=(",", ":")).encode()


class Answers:
    """What is said to what."""

    def __init__(self, size: int) -> None:
        self._result = result(size)

    def to(self, line: bytes) -> "tuple[bytes, ...]":
        """The answer to one message, in parts, so that a large result is never copied; none where none is due."""
        if b'"tools/call"' in line:
            start = line.index(b'"id":') + 5
            end = min(at for at in (line.find(b",", start), line.find(b"}", start)) if at > 0)
            return b'{"jsonrpc":"2.0","id":%s,"result":' % line[start:end].strip(), self._result, b"}"
        message = json.loads(line)
        return (json.dumps(_answer(message)).encode(),) if "id" in message else ()


def _answer(message: dict[str, object]) -> dict[str, object]:
    method, params = message["method"], message.get("params")
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        assert isinstance(params, dict)
        info = {"name": "bench", "version": "1"}
        version = params["protocolVersion"]
        return {**head, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        return {**head, "result": {"tools": [TOOL]}}
    if method == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": -32601, "message": "Method not found"}}


def serve_stdio(answers: Answers) -> None:
    """Answer until stdin ends."""
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        answer = answers.to(line)
        if answer:
            for part in answer:
                out.write(part)
            out.write(b"\n")
            out.flush()


class Client:
    """One connection; requests on it come one after the other."""

    def __init__(self, opened: socket.socket, answers: Answers) -> None:
        opened.setblocking(True)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = opened
        self._answers = answers
        self._got = b""

    def read(self) -> bool:
        """Answer what has arrived; False once the client is gone."""
        try:
            data = self._socket.recv(1 << 16)
            if not data:
                return False
            self._got += data
            while (end := self._end()) is not None:
                request, self._got = self._got[:end], self._got[end:]
                for part in self._reply(request):
                    self._socket.sendall(part)
        except OSError:
            return False
        return True

    def _end(self) -> "int | None":
        body = self._got.find(b"\r\n\r\n") + 4
        if body < 4:
            return None
        head = self._got[:body].lower()
        at = head.find(b"content-length:")
        end = body + (int(head[at + 15 : head.index(b"\r\n", at)]) if at > 0 else 0)
        return end if len(self._got) >= end else None

    def _reply(self, request: bytes) -> "tuple[bytes, ...]":
        if not request.startswith(b"POST"):  # no stream of our own, and no sessions to end
            return (b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n",)
        answer = self._answers.to(request[request.index(b"\r\n\r\n") + 4 :])
        if not answer:
            return (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",)
        length = sum(map(len, answer))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length
        # A small answer leaves in one packet.
        return (head + b"".join(answer),) if length < 1 << 16 else (head, *answer)

    def close(self) -> None:
        """The client is gone."""
        self._socket.close()


def serve_http(answers: Answers, port: int) -> None:
    """Answer for ever."""
    listening = socket.create_server(("127.0.0.1", port), backlog=1024)
    events = select.epoll()
    events.register(listening, select.EPOLLIN)
    clients: dict[int, Client] = {}
    while True:
        for number, _ in events.poll():
            if number == listening.fileno():
                opened = listening.accept()[0]
                clients[opened.fileno()] = Client(opened, answers)
                events.register(opened, select.EPOLLIN)
            elif not clients[number].read():
                events.unregister(number)
                clients.pop(number).close()


def main() -> None:
    """Read the command line and serve."""
    answers = Answers(int(sys.argv[1]))
    if len(sys.argv) > 2:
        serve_http(answers, int(sys.argv[2]))
    else:
        serve_stdio(answers)


if __name__ == "__main__":
    main()
