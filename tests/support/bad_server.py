"""A stdio MCP server that misbehaves on request. Run as a script with a JSON object of options; see OPTIONS.

Only the standard library, and nothing slow to import: tests start hundreds of these.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

OPTIONS: dict[str, Any] = {
    "era": "handshake",  # "modern": 2026-07-28; "mute": ignores methods it does not know; "fragile": dies of them
    "pages": [[{"name": "echo", "inputSchema": {"type": "object"}}]],  # of tools/list; an entry may be raw JSON text
    "endless": None,  # "same": the same cursor for ever; "new": a new one every time
    "capabilities": {"tools": {"listChanged": True}},
    "instructions": "",
    "record": None,  # a file that gets every line received
    "ignore_term": False,
    "before": "",  # text printed to stdout before anything else
    "complain": "",  # text printed to stderr before anything else
    "exit_at_start": None,
    "hang_at_start": False,
    "die_after_list": False,
}

MODERN = "2026-07-28"
_lock = threading.RLock()
options: dict[str, Any] = dict(OPTIONS)


def write(data: bytes) -> None:
    with _lock:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(request_id: Any, **structured: Any) -> None:
    send({"id": request_id, "result": {"content": [], "structuredContent": structured}})


# What a tool of that name does when it is called.


def echo(request_id: Any, arguments: dict[str, Any]) -> None:
    answer(request_id, **arguments)


def about(request_id: Any, arguments: dict[str, Any]) -> None:
    answer(request_id, pid=os.getpid(), env=dict(os.environ), cwd=os.path.realpath("."))


def raw(request_id: Any, arguments: dict[str, Any]) -> None:
    """Write the given bytes, with $ID as the request's id."""
    write(base64.b64decode(arguments["data"]).replace(b"$ID", json.dumps(request_id).encode()))


def never(request_id: Any, arguments: dict[str, Any]) -> None:
    pass


def late(request_id: Any, arguments: dict[str, Any]) -> None:
    time.sleep(arguments["seconds"])
    answer(request_id, late=True)


def big(request_id: Any, arguments: dict[str, Any]) -> None:
    """An answer of about this size; its id comes first or last."""
    size, last = arguments["size"], arguments.get("id_last", False)
    block = b"x" * 65536
    with _lock:  # one line, whatever the other threads have to say
        write(b'{"result":{"x":"' if last else b'{"jsonrpc":"2.0","id":%d,"result":{"x":"' % request_id)
        for _ in range(size // len(block)):
            write(block)
        write(b'"},"jsonrpc":"2.0","id":%d}\n' % request_id if last else b'"}}\n')


def flood(request_id: Any, arguments: dict[str, Any]) -> None:
    """The same bytes over and over, to stdout or stderr, then an answer."""
    piece = base64.b64decode(arguments["data"])
    block = piece * max(1, 65536 // len(piece))
    for _ in range(arguments["size"] // len(block) + 1):
        if arguments.get("fd", 1) == 1:
            write(block)
        else:
            os.write(2, block)
    answer(request_id, flooded=True)


def progress(request_id: Any, arguments: dict[str, Any]) -> None:
    words = {"message": "x" * arguments["size"]} if "size" in arguments else {}
    for count in range(arguments["count"]):
        report = {"progressToken": request_id, "progress": count, **words}
        send({"method": "notifications/progress", "params": report})
        time.sleep(arguments["every"])
    if arguments.get("answer", True):
        answer(request_id, done=True)


def close_stdout(request_id: Any, arguments: dict[str, Any]) -> None:
    os.close(1)


def deaf(request_id: Any, arguments: dict[str, Any]) -> None:
    """Answer, and say something more, and read nothing any more."""
    answer(request_id, deaf=True)
    write(base64.b64decode(arguments.get("data", "")))
    while True:
        time.sleep(60)


def die(request_id: Any, arguments: dict[str, Any]) -> None:
    write(base64.b64decode(arguments.get("data", "")).replace(b"$ID", json.dumps(request_id).encode()))
    os.write(2, arguments.get("stderr", "").encode())
    os._exit(arguments.get("code", 3))


def grandchild(request_id: Any, arguments: dict[str, Any]) -> None:
    apart = bool(arguments.get("apart"))
    child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, start_new_session=apart)
    answer(request_id, pid=child.pid)


def notify(request_id: Any, arguments: dict[str, Any]) -> None:
    send({"method": arguments["method"], **arguments.get("more", {})})
    answer(request_id, told=True)


def change(request_id: Any, arguments: dict[str, Any]) -> None:
    options["pages"] = arguments["pages"]
    send({"method": "notifications/tools/list_changed"})
    answer(request_id, changed=True)


INLINE = {"deaf", "close_stdout"}
TOOLS = {
    tool.__name__: tool
    for tool in (
        echo, about, raw, never, late, big, flood, progress, close_stdout, deaf, die, grandchild, notify, change,
    )
}  # fmt: skip


# The protocol.


def tools_list(request_id: Any, params: dict[str, Any]) -> None:
    at = int(params.get("cursor", 0))
    page = options["pages"][at % len(options["pages"])]
    tools = ",".join(tool if isinstance(tool, str) else json.dumps(tool) for tool in page)
    tools = tools.replace("$HUGE", "x" * 600_000)  # too long for a command line
    more = ""
    if options["endless"] is not None:
        more = f',"nextCursor":"{at + 1 if options["endless"] == "new" else 1}"'
    elif at + 1 < len(options["pages"]):
        more = f',"nextCursor":"{at + 1}"'
    extra = ',"resultType":"complete","ttlMs":0,"cacheScope":"private"' if options["era"] == "modern" else ""
    write(b'{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]%s%s}}\n' % tuple(
        part.encode() for part in (json.dumps(request_id), tools, more, extra)
    ))  # fmt: skip
    if options["die_after_list"]:
        time.sleep(0.1)
        os._exit(9)


def discover(request_id: Any, params: dict[str, Any]) -> None:
    send(
        {
            "id": request_id,
            "result": {
                "supportedVersions": [MODERN],
                "capabilities": options["capabilities"],
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bad", "version": "1"}},
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
            },
        }
    )


def initialize(request_id: Any, params: dict[str, Any]) -> None:
    result = {
        "protocolVersion": params["protocolVersion"],
        "capabilities": options["capabilities"],
        "serverInfo": {"name": "bad", "version": "1"},
        "instructions": options["instructions"],
    }
    send({"id": request_id, "result": result})


def listen(request_id: Any, params: dict[str, Any]) -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": request_id}
    filters = params.get("notifications", {})
    send({"method": "notifications/subscriptions/acknowledged", "params": {"_meta": meta, "notifications": filters}})


def handle(message: dict[str, Any]) -> None:
    method, request_id, params = message.get("method"), message.get("id"), message.get("params") or {}
    modern = options["era"] == "modern"
    if request_id is None or method is None:
        return
    if method == "tools/call":
        tool = TOOLS[params["name"]]
        if params["name"] in INLINE:
            tool(request_id, params.get("arguments", {}))
        else:
            threading.Thread(target=tool, args=(request_id, params.get("arguments", {})), daemon=True).start()
    elif method == "tools/list":
        tools_list(request_id, params)
    elif method == "initialize" and not modern:
        initialize(request_id, params)
    elif method == "server/discover" and modern:
        discover(request_id, params)
    elif method == "subscriptions/listen" and modern:
        listen(request_id, params)
    elif method == "ping" and not modern:
        send({"id": request_id, "result": {}})
    elif options["era"] == "fragile":
        os._exit(1)
    elif options["era"] != "mute":
        send({"id": request_id, "error": {"code": -32601, "message": f"no method {method}"}})


def main() -> None:
    options.update(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    if options["ignore_term"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    write(options["before"].encode())
    os.write(2, options["complain"].encode())
    if options["exit_at_start"] is not None:
        sys.exit(options["exit_at_start"])
    while options["hang_at_start"]:
        time.sleep(60)
    for line in sys.stdin.buffer:
        if options["record"]:
            record = os.open(options["record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(record, line)
            os.close(record)
        handle(json.loads(line))
    while options["ignore_term"]:
        time.sleep(60)


if __name__ == "__main__":
    main()
