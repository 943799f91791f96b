"""Where do log lines go? To stderr, one line each, without secrets and without control characters."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)}


class _Formatter(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(super().format(record)).translate(_CONTROL)


def set_up_logging(level: str, mask: Callable[[str], str] = str) -> None:
    """Log our own lines at the level asked for, and of the libraries only what goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(mask))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("mcpproxy").setLevel(level.upper())
    # The SDK logs tracebacks for what is a client's or an upstream's fault; what matters of it we log ourselves.
    for name in ("mcp", "client", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else logging.CRITICAL)
