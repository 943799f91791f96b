"""Was this text's vector computed before? Vectors of the larger model, kept on disk by hash, bounded."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from mcpproxy.arrays import np
from mcpproxy.catalog.search.semantic import Floats

log = logging.getLogger(__name__)

MAX_VECTORS = 50_000
"""About 50 MB on disk; the vectors unused for longest go first."""
_DAY = 86_400


class VectorCache:
    """A file of vectors for the one thread that builds. A cache that fails is a cache that is empty."""

    def __init__(self, path: Path, encoder: str, *, max_vectors: int = MAX_VECTORS) -> None:
        self._path = path
        self._encoder = encoder
        self._max = max_vectors
        self._open: sqlite3.Connection | None = None
        self._broken = False

    def find(self, digests: Iterable[bytes]) -> dict[bytes, Floats]:
        """The vectors that are there."""
        found: dict[bytes, Floats] = {}
        today = int(time.time()) // _DAY
        try:
            base = self._connection()
            if base is None:
                return {}
            for digest in digests:
                row = base.execute("SELECT vector FROM vectors WHERE digest = ?", (self._key(digest),)).fetchone()
                if row is not None:
                    found[digest] = np.frombuffer(row[0], np.float16).astype(np.float32)
            marks = [(today, self._key(digest), today) for digest in found]
            base.executemany("UPDATE vectors SET used = ? WHERE digest = ? AND used <> ?", marks)
            base.commit()
        except sqlite3.Error as error:
            self._give_up(error)
        return found

    def keep(self, vectors: Mapping[bytes, Floats]) -> None:
        """Keep vectors for the next start, and drop the oldest beyond the bound."""
        today = int(time.time()) // _DAY
        rows = [(self._key(digest), vector.astype(np.float16).tobytes(), today) for digest, vector in vectors.items()]
        try:
            base = self._connection()
            if base is None:
                return
            base.executemany("INSERT OR REPLACE INTO vectors (digest, vector, used) VALUES (?, ?, ?)", rows)
            base.execute(
                "DELETE FROM vectors WHERE digest IN (SELECT digest FROM vectors ORDER BY used DESC, rowid DESC "
                "LIMIT -1 OFFSET ?)",
                (self._max,),
            )
            base.commit()
        except sqlite3.Error as error:
            self._give_up(error)

    def close(self) -> None:
        """Let go of the file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _key(self, digest: bytes) -> bytes:
        return self._encoder.encode() + b":" + digest

    def _connection(self) -> sqlite3.Connection | None:
        if self._open is None and not self._broken:
            try:
                self._open = self._connect()
            except sqlite3.DatabaseError as error:
                # Not a database, or half of one: nothing in it cannot be computed again.
                log.warning("the vector cache %s is unreadable and starts anew: %s", self._path, error)
                self._path.unlink(missing_ok=True)
                self._open = self._connect()
        return self._open

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        base = sqlite3.connect(self._path, timeout=5, check_same_thread=False)
        base.execute("PRAGMA synchronous = OFF")
        base.execute("CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER)")
        return base

    def _give_up(self, error: sqlite3.Error) -> None:
        log.warning("the vector cache %s failed; vectors are computed without it: %s", self._path, error)
        self._broken = True
        self.close()
