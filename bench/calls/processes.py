"""What does a process cost? CPU, memory and descriptors of it and all that it started, read from /proc.

Upstreams of the bench are counted apart: a gateway is to be measured, not what stands behind it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_TICK = os.sysconf("SC_CLK_TCK")
_UPSTREAMS = (b"/upstream.py", b"/many.py")


class Cost(Struct, frozen=True):
    """What a tree of processes has used so far, or holds now."""

    cpu: float
    """Seconds."""
    rss: int
    """Bytes that are resident now."""
    peak: int
    """Bytes that were at the most, since `reset_peak`; the peaks of several processes are added up."""
    files: int
    processes: int


class Tree:
    """A process and all that descends from it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def own(self) -> Cost:
        """Without the upstreams of the bench."""
        return _sum(pid for pid in self._pids() if not _is_upstream(pid))

    def upstreams(self) -> Cost:
        """The upstreams of the bench alone."""
        return _sum(pid for pid in self._pids() if _is_upstream(pid))

    def child(self) -> Tree:
        """What the process started first."""
        return Tree(self._pids()[1])

    def reset_peak(self) -> None:
        """Measure the peak of memory from now on."""
        for pid in self._pids():
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")

    def _pids(self) -> list[int]:
        """Read anew each time: children come and go."""
        found = [self.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found.extend(int(child) for child in (task / "children").read_text().split())
        return found


def _is_upstream(pid: int) -> bool:
    with contextlib.suppress(OSError):
        _, *arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        # A gateway has the upstream somewhere among its arguments; the upstream itself is what Python runs.
        script = next((argument for argument in arguments if not argument.startswith(b"-")), b"")
        return script.endswith(_UPSTREAMS)
    return False


def _sum(pids: Iterator[int]) -> Cost:
    cpu, rss, peak, files, processes = 0.0, 0, 0, 0, 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            cpu += (int(fields[11]) + int(fields[12])) / _TICK
            rss += _kilobytes(status, "VmRSS")
            peak += _kilobytes(status, "VmHWM")
            files += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
            processes += 1
    return Cost(cpu, rss, peak, files, processes)


def _kilobytes(status: dict[str, str], name: str) -> int:
    return int(status.get(name, "0").split()[0]) * 1024
