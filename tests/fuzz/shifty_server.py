"""A stdio server whose tools stand in a file: `shifty_server.py TOOLS`. It says so when the file changes,
unless there is another of the same name that ends in `.quiet`.

Only the standard library: a state machine starts hundreds of these.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

_out = threading.Lock()
listed: list[tuple[int, int]] = []
"""Which versions of the file it has listed."""


def say(message: dict[str, Any]) -> None:
    """One message to the proxy."""
    with _out:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def stamp(path: Path) -> tuple[int, int]:
    """What tells one version of the file from the next: each replaces the one before."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def watch(path: Path) -> None:
    """Tell of every change since the last list, for ever."""
    told = None
    while True:
        time.sleep(0.01)
        now = stamp(path)
        if listed and now not in (listed[-1], told) and not path.with_suffix(".quiet").exists():
            told = now
            say({"method": "notifications/tools/list_changed"})


def result(method: str, params: dict[str, Any], path: Path) -> dict[str, Any] | None:
    """What to answer; None for what it does not know."""
    if method == "initialize":
        version, info = params["protocolVersion"], {"name": "shifty", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info}
    if method == "tools/list":
        listed.append(stamp(path))
        return {"tools": json.loads(path.read_text())}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"called {params['name']} of {path.stem}"}]}
    return {} if method == "ping" else None


def main() -> None:
    """Answer line by line until stdin ends."""
    path = Path(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/initialized":
            threading.Thread(target=watch, args=(path,), daemon=True).start()
        if "id" not in message:
            continue
        answer = result(message["method"], message.get("params") or {}, path)
        body: dict[str, Any] = {"error": {"code": -32601, "message": "no"}} if answer is None else {"result": answer}
        say({"id": message["id"], **body})
    os._exit(0)


if __name__ == "__main__":
    main()
