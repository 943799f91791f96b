"""Is this writer still alive? Each holds a lock that ends with its process, however that ends.

The file that is locked also has a note of how far the writer's chain went: what the database has lost since, with the
file beside it or by an older copy, is missed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import MsgspecError
from msgspec.json import decode, encode

from mcpproxy.activity.chain import Statement

_FOLDER: Final = "writers"
_RETAKE_TRIES: Final = 10
_RETAKE_PAUSE_SECONDS: Final = 0.1


class Lease(Protocol):
    """The lock that tells the living writers from the dead."""

    def take(self, connection: Any, writer: str) -> None:
        """Hold the lock of a new writer."""

    def retake(self, connection: Any, writer: str) -> bool:
        """Hold on to the lock of this writer on a new connection; False where that cannot be."""

    def is_free(self, connection: Any, writer: str) -> bool:
        """Whether nobody holds the lock of that writer. Called inside a transaction."""

    def release(self) -> None:
        """Let go of the lock."""

    def note(self, head: Statement) -> None:
        """Keep outside of the database how far the chain of this writer goes."""

    def left_behind(self) -> list[Statement]:
        """The notes of writers that are no more."""

    def forget(self, writer: str) -> None:
        """Remove what a dead writer left, note and all."""


def notes_in(data_dir: Path) -> Iterator[Statement]:
    """The notes of all writers, living and dead, that can be read and are signed."""
    folder = data_dir / _FOLDER
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(OSError, MsgspecError):  # it may be gone by now, and one that is cut is no note
            note = decode(path.read_bytes(), type=Statement)
            if note.writer == path.name and note.is_signed():
                yield note


class FileLease:
    """For SQLite: a locked file in the data directory, since all writers are on one machine."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / _FOLDER
        self._held: tuple[int, Path] | None = None

    def take(self, connection: Any, writer: str) -> None:
        """Create and lock the file of this writer."""
        self.release()
        path = self._folder / writer
        self._folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held = descriptor, path

    def retake(self, connection: Any, writer: str) -> bool:
        """The file stays locked whatever becomes of a connection."""
        return self._held is not None and self._held[1].name == writer

    def is_free(self, connection: Any, writer: str) -> bool:
        """Whether the file is gone or unlocked."""
        try:
            descriptor = os.open(self._folder / writer, os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Remove and unlock the file."""
        if self._held is not None:
            descriptor, path = self._held
            path.unlink(missing_ok=True)
            os.close(descriptor)
            self._held = None

    def note(self, head: Statement) -> None:
        """Write it into the locked file; where that fails, the database itself soon will."""
        if self._held is not None:
            data = encode(head)
            with contextlib.suppress(OSError):
                os.ftruncate(self._held[0], os.pwrite(self._held[0], data, 0))

    def left_behind(self) -> list[Statement]:
        """The notes in files that nobody has locked."""
        return [note for note in notes_in(self._data_dir) if self.is_free(None, note.writer)]

    def forget(self, writer: str) -> None:
        """Remove the file."""
        (self._folder / writer).unlink(missing_ok=True)


class SessionLease:
    """For PostgreSQL: an advisory lock of the writer's session, since replicas share only the database."""

    def take(self, connection: Any, writer: str) -> None:
        """Lock in the session, which outlives the transaction."""
        self.retake(connection, writer)

    def retake(self, connection: Any, writer: str) -> bool:
        """Lock in the new session, once the server has noticed that the old one is gone."""
        for _ in range(_RETAKE_TRIES):
            if connection.execute("SELECT pg_try_advisory_lock(%s)", (_lock_key(writer),)).fetchone()[0]:
                return True
            time.sleep(_RETAKE_PAUSE_SECONDS)
        return False

    def is_free(self, connection: Any, writer: str) -> bool:
        """Try the lock until the end of the transaction."""
        return bool(connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_lock_key(writer),)).fetchone()[0])

    def release(self) -> None:
        """Nothing to do: the lock ends with the connection."""

    def note(self, head: Statement) -> None:
        """Nothing to do: the server keeps what it has committed."""

    def left_behind(self) -> list[Statement]:
        """Nothing."""
        return []

    def forget(self, writer: str) -> None:
        """Nothing to do."""


def _lock_key(writer: str) -> int:
    return int.from_bytes(sha256(b"mcpproxy writer " + writer.encode()).digest()[:8], "big", signed=True)
