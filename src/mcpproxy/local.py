"""How does the operator's own terminal reach us? By a unix socket that only the operator's user can open."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mcpproxy.config.files import locked

log = logging.getLogger(__name__)

SOCKET_NAME: Final = "mcpproxy.sock"
_LONGEST_PATH: Final = 103  # bytes; Linux takes 107, macOS 103
_BACKLOG: Final = 128
_INSTEAD: Final = "the command line will use the listen address and the API key instead"


def socket_path(data_dir: Path) -> Path:
    """Where the socket of a data directory stands."""
    return data_dir / SOCKET_NAME


@contextlib.contextmanager
def local_socket(data_dir: Path) -> Iterator[socket.socket | None]:
    """A listening socket for the length of the block; None, and a warning that says why, where it cannot be had."""
    path = socket_path(data_dir)
    try:
        opened = _open(path)
    except (OSError, ValueError) as error:
        log.warning("no unix socket at %s: %s; %s", path, error, _INSTEAD)
        yield None
        return
    ours = path.stat().st_ino
    try:
        yield opened
    finally:
        opened.close()
        with contextlib.suppress(OSError):
            if path.stat().st_ino == ours:  # another process may have put its own there since
                path.unlink()


def _open(path: Path) -> socket.socket:
    length = len(os.fsencode(path))
    if length > _LONGEST_PATH:
        raise ValueError(f"the path has {length} bytes, at most {_LONGEST_PATH} are possible; use a shorter --data-dir")
    with locked(path):
        _clear(path)
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # private from its first moment on
        try:
            opened.bind(str(path))
            opened.listen(_BACKLOG)
        except BaseException:
            opened.close()
            raise
        finally:
            os.umask(before)
    opened.setblocking(False)
    return opened


def _clear(path: Path) -> None:
    """Take away the socket of a process that has ended; that of a living one stays its own."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ValueError("something else stands there; move it away")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise ValueError("another mcpproxy runs with this data directory")
