"""Which handshake-era sessions are open? Ours to say, since the lane beside the SDK keeps them busy unseen by it."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct

IDLE_SECONDS = 3600.0
"""How long a session may be without a request."""


class Session(Struct):
    """One session that the SDK opened."""

    id: str
    """The name that its client knows: of 128 random bits, which the SDK's own is not quite."""
    inner: str
    """The SDK's name for it, which nobody else knows."""
    owner: str
    """The key of the caller that opened it: nobody else may use it."""
    client_name: str | None
    in_use: int = 0
    used_at: float = 0.0


class Sessions:
    """The open sessions, least recently used first."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._open.values()))

    def add(self, inner: str, owner: str, client_name: str | None) -> Session:
        """The SDK opened a session."""
        session = Session(secrets.token_hex(16), inner, owner, client_name, used_at=time.monotonic())
        self._open[session.id] = session
        return session

    def get(self, session_id: str) -> Session | None:
        """An open session."""
        return self._open.get(session_id)

    def forget(self, session_id: str) -> None:
        """The session is closed."""
        self._open.pop(session_id, None)

    def begin(self, session: Session) -> None:
        """A request of this session is under way."""
        session.in_use += 1

    def end(self, session: Session) -> None:
        """It is done."""
        session.in_use -= 1
        session.used_at = time.monotonic()
        if session.id in self._open:
            self._open.move_to_end(session.id)

    def overdue(self, keep: int) -> list[Session]:
        """Sessions to close: those idle for too long, and the longest idle ones above the number to keep."""
        surplus = len(self._open) - keep
        deadline = time.monotonic() - IDLE_SECONDS
        found: list[Session] = []
        for session in self._open.values():
            if session.in_use:
                continue
            if len(found) >= surplus and session.used_at >= deadline:
                break  # whatever follows was used later
            found.append(session)
        return found
