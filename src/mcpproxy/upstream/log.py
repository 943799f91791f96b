"""What did one server say on the side? Its stderr and our remarks on it, the last of them, in memory and on disk."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

MAX_FILE_BYTES = 1024 * 1024
MAX_LINES = 1000
MAX_LINE = 2000
MAX_BYTES_PER_SECOND = 256 * 1024
_LINE_COST = 256
"""What a line costs beside its bytes: a flood of empty ones is a flood too."""
_MAX_FILE_NAME = 200


def log_path(data_dir: Path, server: str) -> Path:
    """Where a server's log stands; two names never share a file."""
    safe = quote(server, safe="")
    if len(safe) > _MAX_FILE_NAME:
        safe = safe[:_MAX_FILE_NAME] + "-" + hashlib.sha256(server.encode()).hexdigest()[:16]
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
        self._last_error = ""

    @property
    def lines(self) -> list[str]:
        """The last lines, oldest first."""
        return list(self._lines)

    @property
    def last_error(self) -> str:
        """The last line that the server wrote itself since it began, which mostly says why it ended."""
        return self._mask(_text(self._partial)) or self._last_error

    def begin(self) -> None:
        """The server is started anew: what it said before is history."""
        if self._partial:
            self._say(self._partial)
        self._partial, self._last_error = b"", ""

    def stderr(self, data: bytes) -> None:
        """Take a piece of the server's stderr."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._spent = second, 0
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self.note(f"dropped {dropped} bytes of stderr that came too fast")
        self._spent += len(data) + _LINE_COST * data.count(b"\n")
        if self._spent > MAX_BYTES_PER_SECOND:
            self._dropped += len(data)
            self._partial = b""
            return
        *whole, rest = (self._partial + data).split(b"\n")
        self._partial = rest if len(rest) <= MAX_LINE else b""
        for line in whole if len(rest) <= MAX_LINE else [*whole, rest]:
            self._say(line)

    def _say(self, line: bytes) -> None:
        text = self._mask(_text(line))
        if text:
            self._last_error = text
            self._add(f"! {text}")

    def note(self, text: str) -> None:
        """Add a remark of our own."""
        self._add(f"- {self._mask(text)}")

    def _add(self, text: str) -> None:
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}"
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
        self.begin()
        if self._file is not None:
            self._file.close()
            self._file = None


def _text(line: bytes) -> str:
    return line[:MAX_LINE].decode(errors="replace").strip()
