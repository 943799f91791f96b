"""Where do log lines go? To stderr, one line each, without secrets and without control characters."""

from __future__ import annotations

import logging
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

FEW: Final = 5
AGAIN_SECONDS: Final = 60.0
_MOST_REMEMBERED: Final = 500
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)}


class _Formatter(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask(super().format(record)).translate(_CONTROL)


class NotForEver(logging.Filter):
    """What is wrong all night need not be said every second: the same words a few times, then once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._said: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to say it."""
        if record.levelno < logging.WARNING:
            return True
        text = record.getMessage()
        count, at = self._said.pop(text, (0, float("-inf")))
        long_ago = record.created - at >= AGAIN_SECONDS
        speaks = count < FEW or long_ago
        self._said[text] = (count + 1, record.created if speaks else at)
        if len(self._said) > _MOST_REMEMBERED:
            self._said.popitem(last=False)
        return speaks


def set_up_logging(level: str, mask: Callable[[str], str] = str) -> None:
    """Log our own lines at the level asked for, and of the libraries only what goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(mask))
    handler.addFilter(NotForEver())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("mcpproxy").setLevel(level.upper())
    # The SDK logs tracebacks for what is a client's or an upstream's fault; what matters of it we log ourselves.
    for name in ("mcp", "client", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else logging.CRITICAL)
