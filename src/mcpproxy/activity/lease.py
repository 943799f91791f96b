"""Is this writer still alive? Each holds a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol

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


class FileLease:
    """For SQLite: a locked file in the data directory, since all writers are on one machine."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "writers"
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
        """Whether the file is gone or unlocked; one that a dead writer left is removed."""
        try:
            descriptor = os.open(self._folder / writer, os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            (self._folder / writer).unlink(missing_ok=True)
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


def _lock_key(writer: str) -> int:
    return int.from_bytes(sha256(b"mcpproxy writer " + writer.encode()).digest()[:8], "big", signed=True)
