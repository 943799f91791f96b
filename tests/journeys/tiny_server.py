"""What is the least that counts as an MCP server? One tool over stdio, with the standard library alone.

It starts in milliseconds, so a hundred of them can run at once. `--helper` makes it start a child of its own that
ignores polite signals, as real launchers do; `--tool NAME` renames its tool; `--slow SECONDS` delays its handshake.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

_HELPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def _tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": "Say it back.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "annotations": {"readOnlyHint": True},
    }


def _result(method: str, params: dict[str, Any], tool: str) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tiny", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [_tool(tool)]}
    if method == "tools/call":
        text = params.get("arguments", {}).get("text", "")
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}}
    return None


def _option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main() -> None:
    """Answer line by line until stdin ends."""
    if "--helper" in sys.argv:
        subprocess.Popen([sys.executable, "-c", _HELPER])
    tool, slow = _option("--tool", "echo"), float(_option("--slow", "0"))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            time.sleep(slow)
        result = _result(message["method"], message.get("params") or {}, tool)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        else:
            answer["result"] = result
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
