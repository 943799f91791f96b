"""What did one server say on the side? Its stderr and our remarks on it, the last of them, in memory and on disk."""

from __future__ import annotations

import contextlib
import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

MAX_FILE_BYTES = 1024 * 1024
MAX_LINES = 1000
MAX_LINE = 2000
MAX_BYTES_PER_SECOND = 256 * 1024

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


def log_path(data_dir: Path, server: str) -> Path:
    """Where a server's log stands; two names never share a file."""
    safe = _UNSAFE.sub(lambda found: f"%{ord(found[0]):x}", server)
    return data_dir / "logs" / f"server-{safe}.log"


class ServerLog:
    """A bounded log: a flood costs the flooding server its own lines and nobody anything else."""

    def __init__(self, path: Path, mask: Callable[[str], str]) -> None:
        self._path = path
        self._mask = mask
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._partial = b""
        self._file: BinaryIO | None = None
        self._second = 0
        self._spent = 0
        self._dropped = 0

    @property
    def lines(self) -> list[str]:
        """The last lines, oldest first."""
        return list(self._lines)

    @property
    def last_error(self) -> str:
        """The last line the server wrote itself, which mostly says why it ended."""
        return next((line.partition(" ! ")[2] for line in reversed(self._lines) if " ! " in line[:24]), "")

    def stderr(self, data: bytes) -> None:
        """Take a piece of the server's stderr."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._spent = second, 0
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self.note(f"dropped {dropped} bytes of stderr that came too fast")
        self._spent += len(data)
        if self._spent > MAX_BYTES_PER_SECOND:
            self._dropped += len(data)
            self._partial = b""
            return
        *whole, rest = (self._partial + data).split(b"\n")
        self._partial = rest if len(rest) <= MAX_LINE else b""
        for line in whole if len(rest) <= MAX_LINE else [*whole, rest]:
            if line.strip():
                self._add(f"! {line[:MAX_LINE].decode(errors='replace').rstrip()}")

    def note(self, text: str) -> None:
        """Add a remark of our own."""
        self._add(f"- {text}")

    def _add(self, text: str) -> None:
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {self._mask(text)}"
        self._lines.append(line)
        with contextlib.suppress(OSError):  # a full disk must not stop a server that works
            self._write(line.encode(errors="replace") + b"\n")

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
            self._path.chmod(0o600)
        if self._file.tell() + len(line) > MAX_FILE_BYTES:
            self._file.close()
            self._path.replace(self._path.with_suffix(".log.1"))
            self._file = self._path.open("ab", buffering=0)
            self._path.chmod(0o600)
        self._file.write(line)

    def close(self) -> None:
        """Let go of the file."""
        if self._partial.strip():
            self.stderr(b"\n")
        if self._file is not None:
            self._file.close()
            self._file = None
