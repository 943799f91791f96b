"""Where is the rest of an answer that was cut? Kept whole for a while, for the caller that got the beginning."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict

from msgspec import Struct

MAX_BYTES = 64 * 1024 * 1024
MAX_ENTRIES = 1000
LIFETIME = 30 * 60.0


class Kept(Struct, frozen=True):
    """One whole text."""

    text: str
    owner: str
    tool: str
    expires: float
    size: int


class TextCache:
    """Whole texts by key, bounded in number, size and time; the oldest go first."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_entries: int = MAX_ENTRIES, lifetime: float = LIFETIME) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._lifetime = lifetime
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0

    def put(self, text: str, *, owner: str, tool: str) -> str | None:
        """Keep a text and return its key; None where it is too large to keep at all."""
        size = len(text) * 2  # between one and four bytes a character; near enough for a bound
        if size > self._max_bytes:
            return None
        self._drop_expired()
        while self._kept and (self._bytes + size > self._max_bytes or len(self._kept) >= self._max_entries):
            self._bytes -= self._kept.popitem(last=False)[1].size
        key = secrets.token_urlsafe(16)
        self._kept[key] = Kept(text, owner, tool, time.monotonic() + self._lifetime, size)
        self._bytes += size
        return key

    def get(self, key: str, *, owner: str) -> Kept | None:
        """The text of a key, for the caller it was kept for; for anybody else it does not exist."""
        self._drop_expired()
        kept = self._kept.get(key)
        return kept if kept is not None and secrets.compare_digest(kept.owner.encode(), owner.encode()) else None

    def _drop_expired(self) -> None:
        now = time.monotonic()
        while self._kept and next(iter(self._kept.values())).expires <= now:
            self._bytes -= self._kept.popitem(last=False)[1].size
