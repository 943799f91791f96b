"""A stdio MCP server, standard library only, whose one tool is described as a file says at the time."""

import json
import sys
from pathlib import Path


def answer(message: dict[str, object]) -> dict[str, object] | None:
    match message.get("method"):
        case "initialize":
            params = message["params"]
            assert isinstance(params, dict)
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "changing", "version": "1"},
            }
        case "tools/list":
            text = Path(sys.argv[1]).read_text()
            return {"tools": [{"name": "look", "description": text, "inputSchema": {"type": "object"}}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "seen"}]}
        case "ping":
            return {}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message)
        reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "not here"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
