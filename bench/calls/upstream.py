"""The smallest upstream: a stdio MCP server, standard library only, that answers every call with the same bytes."""

import json
import sys


def main() -> None:
    """Answer until stdin ends; the size of a result comes as the first argument."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    text = "x" * max(size - 48, 1)
    body = json.dumps({"content": [{"type": "text", "text": text}]}, separators=(",", ":")).encode()
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        if b'"tools/call"' in line:
            start = line.index(b'"id":') + 5
            end = min(at for at in (line.find(b",", start), line.find(b"}", start)) if at > 0)
            out.write(b'{"jsonrpc":"2.0","id":' + line[start:end].strip() + b',"result":' + body + b"}\n")
            out.flush()
            continue
        message = json.loads(line)
        if "id" in message:
            out.write(json.dumps(answer(message)).encode() + b"\n")
            out.flush()


def answer(message: dict[str, object]) -> dict[str, object]:
    """What the handshake and the list come to."""
    method, params = message["method"], message.get("params")
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        assert isinstance(params, dict)
        info = {"name": "bench", "version": "1"}
        version = params["protocolVersion"]
        return {**head, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        hints = {"readOnlyHint": True}
        tool = {"name": "echo", "description": "Answers.", "inputSchema": {"type": "object"}, "annotations": hints}
        return {**head, "result": {"tools": [tool]}}
    if method == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": -32601, "message": "Method not found"}}


if __name__ == "__main__":
    main()
