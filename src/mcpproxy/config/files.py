"""How is a private file written so that nobody reads half of it, and nobody else reads it at all?"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK_WAIT = 10.0


def private_dir(path: Path) -> Path:
    """Make the directory, for this user alone, unless it is there already."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_private(path: Path, data: bytes) -> None:
    """Replace the file in one step, mode 0600; after a crash it is the old or the new one. A link stays a link."""
    import tempfile  # brings much along, and most commands write nothing

    target = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            _keep_owner(file.fileno(), target)
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other mcpproxy processes from writing the file; raises TimeoutError where one holds it too long."""
    # The directory is locked, not the file: the file is replaced on every write, and a lock file would stay behind.
    handle = os.open(path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(handle, path)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, path: Path) -> None:
    deadline = time.monotonic() + _LOCK_WAIT
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(f"another program has held the lock on {path.parent} too long") from None
            time.sleep(0.02)


def _keep_owner(handle: int, target: Path) -> None:
    # Root may edit a user's file; it must stay the user's. Whoever may not give files away owns it anyway.
    with suppress(OSError):
        before = target.stat()
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(handle, before.st_uid, before.st_gid)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
