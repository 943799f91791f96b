"""How does a command fail? With one clear paragraph on stderr and an exit code that a script can act on."""

from __future__ import annotations

import sys
from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
DATABASE: Final = 3
CONFIG: Final = 4
PERMISSION: Final = 5
PORT_IN_USE: Final = 6
NO_DAEMON: Final = 7
INTERRUPTED: Final = 130

_NAMES: Final = {
    FAILED: "FAILED",
    USAGE: "USAGE",
    DATABASE: "DATABASE",
    CONFIG: "CONFIG_INVALID",
    PERMISSION: "PERMISSION",
    PORT_IN_USE: "PORT_IN_USE",
    NO_DAEMON: "DAEMON_NOT_REACHABLE",
    INTERRUPTED: "INTERRUPTED",
}


class Failure(Exception):
    """The end of a command that did not do what it was asked to, and what to do next."""

    def __init__(self, exit_code: int, message: str, hint: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.message = message
        self.hint = hint
        self.code = code or _NAMES[exit_code]


def explained(error: Exception) -> Failure | None:
    """What an error of another room comes to on the command line; None for one that should not have happened."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # task groups wrap whatever ends them
    if isinstance(error, Failure):
        return error
    for module, name, exit_code in _KNOWN:
        # Rooms that were never imported raised nothing, and importing them for the question alone is slow.
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return Failure(exit_code, str(error))
    if isinstance(error, PermissionError):
        return Failure(PERMISSION, f"{error.filename or 'a file'} cannot be used: {error.strerror}.")
    return None


_KNOWN: Final = (
    ("mcpproxy.config.errors", "ConfigError", CONFIG),
    ("mcpproxy.config.errors", "ConfigAccessError", PERMISSION),
    ("mcpproxy.storage.errors", "StorageError", DATABASE),
    ("mcpproxy.activity.filters", "BadFilter", USAGE),
    ("mcpproxy.listen", "PortInUse", PORT_IN_USE),
    ("mcpproxy.listen", "CannotListen", FAILED),
    ("mcpproxy.cli.options", "UsageError", USAGE),
)


def report(failure: Failure, *, as_json: bool) -> int:
    """Print what went wrong; gives the exit code."""
    if as_json:
        import json

        body = {"code": failure.code, "message": failure.message, "hint": failure.hint}
        sys.stderr.write(json.dumps(body) + "\n")
    else:
        from mcpproxy.cli.clean import clean_lines

        lines = [f"mcpproxy: {failure.message}", *([failure.hint] if failure.hint else [])]
        sys.stderr.write(clean_lines("\n".join(lines)) + "\n")
    return failure.exit_code
