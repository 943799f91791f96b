"""The proxy, with sessions that expire when they are told to: from SIGUSR1 to SIGUSR2 every idle one is overdue."""

from __future__ import annotations

import signal
import sys

from mcpproxy.agent import http, sessions
from mcpproxy.cli.main import main

IDLE_SECONDS = sessions.IDLE_SECONDS


def set_idle(number: int, _frame: object) -> None:
    """Let no session be idle any more, or all of them again."""
    sessions.IDLE_SECONDS = 0.0 if number == signal.SIGUSR1 else IDLE_SECONDS


if __name__ == "__main__":
    http._SWEEP_EVERY = 1.0
    signal.signal(signal.SIGUSR1, set_idle)
    signal.signal(signal.SIGUSR2, set_idle)
    sys.argv[0] = "mcpproxy"
    main()
