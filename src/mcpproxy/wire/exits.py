"""When has a child process ended? Told on the event loop, whichever loop it is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Callable


def watch_exit(process: subprocess.Popen[bytes], ended: Callable[[int], None]) -> None:
    """Call `ended` with the exit code, on the running loop, once the process has ended and is buried."""
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or one without it
        threading.Thread(target=_wait, args=(process, loop, ended), daemon=True).start()
        return

    def bury() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended(process.wait())

    loop.add_reader(descriptor, bury)


def _wait(process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, ended: Callable[[int], None]) -> None:
    code = process.wait()
    with contextlib.suppress(RuntimeError):  # the loop is gone, and whoever would have liked to know
        loop.call_soon_threadsafe(ended, code)
