"""How does a command fail? With one clear paragraph on stderr and an exit code that a script can act on."""

from __future__ import annotations

import sys
from typing import Final, NoReturn

import msgspec

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
DATABASE: Final = 3
CONFIG: Final = 4
PERMISSION: Final = 5
PORT_IN_USE: Final = 6
NO_DAEMON: Final = 7

_NAMES = {
    FAILED: "FAILED",
    USAGE: "USAGE",
    DATABASE: "DATABASE",
    CONFIG: "CONFIG_INVALID",
    PERMISSION: "PERMISSION",
    PORT_IN_USE: "PORT_IN_USE",
    NO_DAEMON: "DAEMON_NOT_REACHABLE",
}


def fail(code: int, message: str, hint: str = "", *, as_json: bool = False) -> NoReturn:
    """End the command."""
    if as_json:
        body = msgspec.json.encode({"code": _NAMES[code], "message": message, "hint": hint})
        sys.stderr.write(body.decode() + "\n")
    else:
        sys.stderr.write(f"mcpproxy: {message}\n" + (f"{hint}\n" if hint else ""))
    raise SystemExit(code)
