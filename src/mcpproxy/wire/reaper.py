"""Who ends the children when we are killed? A small process that waits for our pipe to close.

A parent-death signal would reach the child only, not what the child started (npx starts node), and it fires
when the thread that forked ends. The reaper ends whole process groups.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

# Runs with nothing but the standard library's core: it must start in milliseconds and stay small.
_SCRIPT = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
groups = set()
for line in sys.stdin.buffer:
    group = int(line[1:])
    groups.add(group) if line[:1] == b"+" else groups.discard(group)
def tell(number):
    for group in tuple(groups):
        try:
            os.killpg(group, number)
        except OSError:
            groups.discard(group)
tell(signal.SIGTERM)
deadline = time.monotonic() + 2
while groups and time.monotonic() < deadline:
    time.sleep(0.05)
    tell(0)
tell(signal.SIGKILL)
"""


class Reaper:
    """Ends every watched process group when this process is gone, however it went."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def start(self) -> None:
        """Start the watching process, or start it again where somebody ended it."""
        # In one go, without a wait: of two that start at once, the lost one would end the groups it had been told of.
        if self._process is None or self._process.poll() is not None:
            self._launch()
            for group in self._groups:
                self._send(b"+", group)

    def _launch(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SCRIPT],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env={"PATH": os.defpath},
        )

    def watch(self, group: int) -> None:
        """End this group if we die."""
        self._groups.add(group)
        self._send(b"+", group)

    def forget(self, group: int) -> None:
        """The group is ended already; its number may soon be somebody else's."""
        self._groups.discard(group)
        self._send(b"-", group)

    def _send(self, sign: bytes, group: int) -> None:
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(OSError):
            self._process.stdin.write(b"%s%d\n" % (sign, group))

    def stop(self) -> None:
        """End what is still watched, and the reaper."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)
