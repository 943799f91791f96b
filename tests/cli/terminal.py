"""How does a test sit at a terminal? It runs the installed `mcpproxy` in a pty of a given width, or in a pipe."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.journeys.support import CONSOLE, PATIENCE, environment, run

Words = str | Path
Result = subprocess.CompletedProcess[str]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Home:
    """A user's home, and the commands that the user runs there."""

    def __init__(self, path: Path, config: Path, data: Path) -> None:
        self.path = path
        self.config = config
        self.data = data

    def words(self, words: tuple[Words, ...]) -> tuple[Words, ...]:
        """The command with the options that lead to this home."""
        return ("--config", self.config, "--data-dir", self.data, *words)

    def run(self, *words: Words, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Result:
        """Run a command in a pipe to its end."""
        if stdin is None and env is None:
            result = run(self.path, *self.words(words))
        else:
            result = subprocess.run(
                [CONSOLE, *self.words(words)],
                env={**environment(self.path), **(env or {})},
                cwd=self.path,
                input=stdin or "",
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        assert "Traceback" not in result.stderr, result.stderr
        return result

    def ok(self, *words: Words, stdin: str | None = None) -> str:
        """What a command that must succeed prints."""
        result = self.run(*words, stdin=stdin)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def json(self, *words: Words, stdin: str | None = None) -> Any:
        """What a command prints with -o json."""
        return json.loads(self.ok("-o", "json", *words, stdin=stdin))

    @contextlib.contextmanager
    def terminal(self, *words: Words, width: int = 120, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
        """A command in a terminal, for the length of the block."""
        with Terminal(self.path, *self.words(words), width=width, env=env) as opened:
            yield opened

    def shown(self, *words: Words, width: int = 120, env: Mapping[str, str] | None = None) -> str:
        """What a command that must succeed shows on a terminal, colours left out."""
        with self.terminal(*words, width=width, env=env) as opened:
            assert opened.end() == 0, opened.text
            return opened.plain


class Terminal:
    """One command in a terminal of its own."""

    def __init__(self, home: Path, *words: Words, width: int = 120, env: Mapping[str, str] | None = None) -> None:
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
            env={**settings, "TERM": "xterm-256color", **(env or {})},
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

    @property
    def plain(self) -> str:
        """The same without colours."""
        return ESCAPES.sub("", self.text)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def until(self, sign: str) -> str:
        """Read on until the terminal shows this."""
        deadline = time.monotonic() + PATIENCE
        while sign not in self.plain:
            assert time.monotonic() < deadline, f"{sign!r} never came:\n{self.text}"
            assert self._read() or sign in self.plain, f"it ended without {sign!r}:\n{self.text}"
        return self.plain

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
