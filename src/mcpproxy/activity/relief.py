"""How does what gathers beside SQLite's file get into it? In rounds that wait for the disk while records go on.

They have a thread of their own: whoever handed a record to the writer's would wait for all of them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any, Final

from sqlalchemy import PoolProxiedConnection

from mcpproxy.activity.ledger import Ledger
from mcpproxy.storage.engine import Storage

log = logging.getLogger(__name__)

MUCH_BESIDE: Final = 64 * 1024 * 1024
"""When so much has gathered it is moved; pages written often in between go out once."""
PAUSE_SECONDS: Final = 0.25
MOST_ROUNDS: Final = 5
SHORT_SECONDS: Final = 0.01
READERS_PATIENCE_MS: Final = 100
"""Where readers that come one after the other have kept the file from being begun anew for long."""


class Relief:
    """Moves it, on a connection of its own; others wait for it only while it has the turn."""

    def __init__(self, storage: Storage, ledger: Ledger, turn: threading.Lock) -> None:
        self._storage = storage
        self._ledger = ledger
        self._turn = turn
        self._moved_at = 0.0
        self._failing = False
        self._mover: threading.Thread | None = None
        self._kept: PoolProxiedConnection | None = None
        self._kept_since = self._synced_inode = 0
        self._synced_file = -1
        ledger.before_opening = self._make_way

    def gathered(self) -> int:
        """How many bytes have gathered since they were last moved."""
        if not self._ledger.inode or self._ledger.connection is None:
            return 0
        try:
            return Path(f"{self._storage.location}-wal").stat().st_size
        except OSError:
            return 0

    def give(self) -> None:
        """Have moved what has gathered, once it is much."""
        if self._is_moving():
            return
        gathered = self.gathered()
        if gathered < MUCH_BESIDE or time.monotonic() < self._moved_at + PAUSE_SECONDS:
            return
        mover = threading.Thread(target=self._give, args=(gathered,), name="activity-relief", daemon=True)
        try:
            mover.start()
        except RuntimeError:  # the machine has no thread left for us
            self._give(gathered)
        else:
            self._mover = mover

    def _is_moving(self) -> bool:
        return self._mover is not None and self._mover.is_alive()

    def _give(self, gathered: int) -> None:
        """Each round leaves what came during it, and is shorter than the one before. Only the last, without which the
        file could not be begun anew, holds records up.
        """
        try:
            for _ in range(MOST_ROUNDS):
                began = time.monotonic()
                self._move()
                if time.monotonic() - began < SHORT_SECONDS:
                    break
            with self._turn:
                self._move(READERS_PATIENCE_MS if gathered > 2 * MUCH_BESIDE else 0)
        except Exception as error:  # it stays where it is safe as well
            level = logging.DEBUG if self._failing else logging.WARNING
            log.log(level, "the file beside the database grows: %s", self._storage.explain(error))
            self._failing = True
            self._let_go()  # a new one may do better, such as where this one was opened for reading
        else:
            self._failing = False
        self._moved_at = time.monotonic()

    def close(self) -> None:
        """Let the last round end, and let go. Not for whoever has the turn: that round may wait for it."""
        if self._mover is not None:
            self._mover.join()
        self._let_go()

    def _make_way(self) -> None:
        """The ledger opens its file anew, so what we have open may be another. A round under way sees to it itself."""
        if not self._is_moving():
            self._let_go()

    def _let_go(self) -> None:
        """Only with the last connection does SQLite tidy up beside its file."""
        if self._kept is not None:
            self._kept.invalidate()
            self._kept = None

    def _move(self, patience: int = 0) -> None:
        """Move all that is there; others may write meanwhile.

        The next commit then begins the file beside it anew, unless somebody reads in it just then. With patience such
        readers are waited for, for so many milliseconds, and nobody can write until that is over.
        """
        connection = self._connection()
        if patience:
            connection.execute(f"PRAGMA busy_timeout={patience}")
        connection.execute(f"PRAGMA wal_checkpoint({'RESTART' if patience else 'PASSIVE'})").fetchone()
        # SQLite syncs its file only where all is moved, and then with those waiting who are to write the next.
        os.fsync(self._file())

    def _connection(self) -> Any:
        """Kept once it was needed: readers may have taken all others."""
        since = self._ledger.times_opened  # before we open ours: the ledger may open its own meanwhile
        if self._kept is None or self._kept_since != since:
            self._let_go()
            self._kept = self._storage.engine.raw_connection()
            self._kept_since = since
        return self._kept.driver_connection

    def _file(self) -> int:
        """SQLite's file, opened once more and for good: to close it would let go of SQLite's own locks on it."""
        inode = self._ledger.inode
        if self._synced_inode != inode:
            self._synced_file = os.open(self._storage.location, os.O_RDWR)
            self._synced_inode = inode
        return self._synced_file
