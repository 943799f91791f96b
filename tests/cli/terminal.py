"""How does a test sit at a terminal? It runs the installed `mcpproxy` in a pty of a given width, or in a pipe."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.journeys.support import CONSOLE, PATIENCE, environment

COLOURS = "xterm-256color"


class Terminal:
    """One command in a terminal of its own."""

    def __init__(self, home: Path, *words: str | Path, width: int = 120, env: Mapping[str, str] | None = None) -> None:
        self.output = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        settings = {name: value for name, value in environment(home).items() if name not in ("NO_COLOR", "COLUMNS")}
        self.process = subprocess.Popen(
            [CONSOLE, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=home,
            env={**settings, "TERM": COLOURS, **(env or {})},
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - nothing else runs in the new process yet
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """What was written to the terminal so far."""
        return self.output.decode(errors="replace").replace("\r\n", "\n")

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def until(self, sign: str) -> str:
        """Read on until the terminal shows this."""
        deadline = time.monotonic() + PATIENCE
        while sign not in self.text:
            assert time.monotonic() < deadline, f"{sign!r} never came:\n{self.text}"
            assert self._read() or sign in self.text, f"it ended without {sign!r}:\n{self.text}"
        return self.text

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.type("\x03")

    def end(self) -> int:
        """Read to the end; gives the exit code."""
        while self._read():
            pass
        return self.process.wait(timeout=PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE)
        assert ready, f"nothing came any more:\n{self.text}"
        with contextlib.suppress(OSError):  # Linux's word for "the other side is closed"
            data = os.read(self._master, 65_536)
            self.output += data
            return bool(data)
        return False


def _take_terminal() -> None:
    # So that Ctrl-C reaches the command as a signal.
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def terminal(
    home: Path, *words: str | Path, width: int = 120, env: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """A command in a terminal, for the length of the block."""
    with Terminal(home, *words, width=width, env=env) as opened:
        yield opened


def shown(home: Path, *words: str | Path, width: int = 120, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command in a terminal to its end: exit code and everything it wrote."""
    with terminal(home, *words, width=width, env=env) as opened:
        code = opened.end()
        return code, opened.text
