"""Who ends the children when we are killed? A small process that waits for our pipe to close.

A parent-death signal would reach the child only, not what the child started (npx starts node), and it fires
when the thread that forked ends. The reaper ends whole process groups, and on Linux also what left its group (a
browser that was started in a session of its own): every child carries a mark in its environment, which all that
descends from it inherits.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

MARK = "MCPPROXY_UPSTREAM"

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
mark = sys.argv[1].encode()
for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
    try:
        if name.isdigit() and mark in open("/proc/" + name + "/environ", "rb").read():
            os.kill(int(name), signal.SIGKILL)
    except OSError:
        pass
"""


class Reaper:
    """Ends every watched process group when this process is gone, however it went."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()
        self._run = secrets.token_hex(8)
        self._children = 0
        self._ended: set[str] = set()
        self._sweeper: threading.Thread | None = None

    def mark(self) -> str:
        """What a new child carries as `MARK` in its environment."""
        self._children += 1
        return f"{self._run}.{self._children}."

    def start(self) -> None:
        """Start the watching process, or start it again where somebody ended it."""
        # In one go, without a wait: of two that start at once, the lost one would end the groups it had been told of.
        if self._process is None or self._process.poll() is not None:
            self._launch()
            for group in self._groups:
                self._send(b"+", group)

    def _launch(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SCRIPT, f"{MARK}={self._run}."],
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

    def forget(self, group: int, mark: str | None = None) -> None:
        """The group is ended already; its number may soon be somebody else's. What left it is ended by its mark."""
        self._groups.discard(group)
        self._send(b"-", group)
        if mark is not None:
            self._ended.add(mark)
            self._sweep()

    def _sweep(self) -> None:
        """Look for what left its group, off the event loop, once for all that ended in the meantime."""
        if self._sweeper is None or not self._sweeper.is_alive():
            self._sweeper = threading.Thread(target=self._end_strays, name="strays", daemon=True)
            self._sweeper.start()

    def _end_strays(self) -> None:
        while self._ended:
            marks = [f"{MARK}={self._ended.pop()}".encode() for _ in range(len(self._ended))]
            for place in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    carried = (place / "environ").read_bytes()
                    if any(mark in carried for mark in marks):
                        os.kill(int(place.name), signal.SIGKILL)

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
