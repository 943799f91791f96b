"""A stdio MCP server of the handshake era, standard library only, that answers with exactly the bytes it is told to."""

import json
import os
import sys
import threading
import time
from pathlib import Path

HINTS = {
    "plain": None,
    "reads": {"readOnlyHint": True},
    "deletes": {"destructiveHint": True},
    "both": {"readOnlyHint": True, "destructiveHint": True},
    "modifies": {"readOnlyHint": False},
    "gentle": {"destructiveHint": False},
}
ANY_OBJECT = {"type": "object"}
COUNTED = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 0}, "note": {"type": "string"}},
    "required": ["count"],
}
_out = threading.Lock()


def say(text: str) -> None:
    with _out:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()


def tools() -> list[dict[str, object]]:
    listed: list[dict[str, object]] = []
    for name, hints in HINTS.items():
        tool: dict[str, object] = {"name": name, "description": f"The {name} tool.", "inputSchema": ANY_OBJECT}
        if hints is not None:
            tool["annotations"] = hints
        listed.append(tool)
    reads = {"readOnlyHint": True}
    listed += [
        # Answers with the raw JSON in `result`.
        {"name": "raw", "description": "Raw.", "inputSchema": ANY_OBJECT, "annotations": reads},
        {
            "name": "typed",
            "description": "Raw, with a declared output.",
            "inputSchema": ANY_OBJECT,
            "outputSchema": COUNTED,
            "annotations": reads,
        },
        # Answers with the very line that it was sent.
        {"name": "line", "description": "The line.", "inputSchema": ANY_OBJECT, "annotations": reads},
        {
            "name": "strict_input",
            "description": "Takes a city.",
            "inputSchema": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
                "required": ["city"],
                "additionalProperties": False,
            },
            "annotations": reads,
        },
        {"name": "slow", "description": "Takes its time.", "inputSchema": ANY_OBJECT, "annotations": reads},
        {"name": "slow_write", "description": "Takes its time to write.", "inputSchema": ANY_OBJECT},
        {"name": "die", "description": "Ends the server.", "inputSchema": ANY_OBJECT},
        {"name": "rpc_error", "description": "Answers with a JSON-RPC error.", "inputSchema": ANY_OBJECT},
    ]
    return listed


def slow(request_id: object, params: dict[str, object], meta: dict[str, object]) -> None:
    arguments = params["arguments"]
    assert isinstance(arguments, dict)
    steps = int(arguments.get("steps", 1))
    for step in range(steps):
        time.sleep(float(arguments.get("pause", 0.05)))
        if "progressToken" in meta:
            report = {"progressToken": meta["progressToken"], "progress": step + 1, "total": steps, "message": "on it"}
            say(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": report}))
    say(json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": "done"}]}}))


def call(line: str, message: dict[str, object]) -> None:
    params = message["params"]
    assert isinstance(params, dict)
    request_id, name, arguments = message["id"], params["name"], params.get("arguments", {})
    if name in ("raw", "typed"):
        say(f'{{"jsonrpc":"2.0","id":{request_id},"result":{arguments["result"]}}}')
    elif name == "line":
        text = json.dumps({"content": [{"type": "text", "text": line}]})
        say(f'{{"jsonrpc":"2.0","id":{request_id},"result":{text}}}')
    elif name in ("slow", "slow_write"):
        threading.Thread(target=slow, args=(request_id, params, params.get("_meta", {})), daemon=True).start()
    elif name == "die":
        os._exit(3)
    elif name == "rpc_error":
        error = {"code": -32050, "message": "no such row"}
        say(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}))
    else:
        result = {"content": [{"type": "text", "text": f"{name} done"}]}
        say(json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}))


def note(text: str) -> None:
    """Leave a trace of what was heard, for the test to read."""
    path = os.environ.get("HEARD")
    if path:
        with Path(path).open("a") as heard:
            heard.write(text + "\n")


def main() -> None:
    for raw in sys.stdin.buffer:
        line = raw.decode("utf-8", "surrogateescape").rstrip("\n")
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        elif method == "tools/list":
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools()}}))
        elif method == "tools/call":
            note(f"call {message['params']['name']}")
            call(line, message)
        elif method == "notifications/cancelled":
            note(f"cancelled {message['params']['requestId']}")
        elif method == "ping":
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}))
        elif "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))


if __name__ == "__main__":
    main()
