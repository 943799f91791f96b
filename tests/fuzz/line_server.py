"""A stdio server of the handshake era with one read-only tool, which answers with the very line that it was sent.

It reads no more of a line than the id, so that nothing odd in the arguments can bring it down.
"""

import json
import re
import sys
from typing import Any

TOOL = {
    "name": "line",
    "description": "The line as it came.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
INFO = {"name": "line", "version": "1"}


def result(method: str, line: str) -> dict[str, Any] | None:
    """What to answer; None for what it does not know."""
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": line}]}
    return {} if method == "ping" else None


def main() -> None:
    """Answer line by line until stdin ends."""
    for raw in sys.stdin.buffer:
        line = raw.decode("utf-8", "surrogateescape").rstrip("\n")
        asked = re.match(r'\{"jsonrpc":"2.0","id":(\d+),"method":"([a-z/]+)"', line)
        if asked is None:
            continue
        answer = result(asked[2], line)
        body: dict[str, Any] = {"error": {"code": -32601, "message": "no"}} if answer is None else {"result": answer}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": int(asked[1]), **body}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
