"""Which agent tokens are there, and what may each of them do?

A token is 256 random bits behind a recognisable prefix. It is shown once and kept as its SHA-256 only: there is
nothing to guess that a slow hash would protect. All of them are held in memory, so that asking costs a call nothing;
a token that is revoked here ends at once, one that another replica revoked or made is known within a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Row, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from mcpproxy.access.tables import agent_tokens
from mcpproxy.activity.record import from_micros, new_id, now, to_micros
from mcpproxy.policy.access import Scope
from mcpproxy.policy.operations import OperationType
from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import StorageError

log = logging.getLogger(__name__)

PREFIX: Final = "mcpp_"
MOST_TOKENS: Final = 1000
LOOK_EVERY: Final = 0.5
"""Seconds between two looks at what other replicas did."""
TRUSTED_FOR: Final = 30.0
"""Seconds for which tokens hold without a look: after that nobody knows whether they were revoked."""
_USE_GRAIN: Final = 60
"""Seconds to which the last use is kept."""


class Grant(Struct, frozen=True, kw_only=True):
    """What a token allows: globs of servers and tools, and the kinds of calls."""

    servers: tuple[str, ...] = ("*",)
    tools: tuple[str, ...] = ("*",)
    allow: tuple[OperationType, ...] = ("read",)


class Token(Struct, frozen=True, kw_only=True):
    """One agent token, without the secret."""

    id: str
    name: str
    grant: Grant
    scope: Scope
    digest: bytes
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def key(self) -> str:
        """The name under which sessions and kept texts belong to this token."""
        return f"token:{self.id}"

    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now()


class NameTaken(Exception):
    """There is a token of that name already."""


class TooManyTokens(Exception):
    """There is no room for another token."""


class TokensUnknown(Exception):
    """The database has not said for a while which tokens there are."""


class Tokens:
    """Every agent token of one database. Used from one event loop."""

    def __init__(self, storage: Storage, on_gone: Callable[[Token], None] = lambda token: None) -> None:
        self._storage = storage
        self._on_gone = on_gone
        self._by_digest: dict[bytes, Token] = {}
        self._used: dict[str, int] = {}
        """When each was last used, in seconds, as far as that is not in the database yet."""
        self._looked_at = 0.0
        self._changing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[Token]:
        """The tokens, oldest first, with their last use as far as it is known here."""
        for token in sorted(self._by_digest.values(), key=lambda token: token.created_at):
            used = self._used.get(token.id)
            at = from_micros(used * 1_000_000) if used is not None else None
            newer = at is not None and (token.last_used_at is None or at > token.last_used_at)
            yield msgspec.structs.replace(token, last_used_at=at) if newer else token

    async def start(self) -> None:
        """Read the tokens and begin to follow what other replicas do."""
        await self._look()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Stop following, and write down the last uses."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        with contextlib.suppress(StorageError):  # when a token was last used is worth no failure
            await asyncio.to_thread(self._write_uses)

    def find(self, secret: str) -> Token | None:
        """The token with this secret, expired or not; None where there is none, or no longer."""
        token = self._by_digest.get(hashlib.sha256(secret.encode()).digest())
        if token is None:
            return None
        if time.monotonic() - self._looked_at > TRUSTED_FOR:
            raise TokensUnknown("Tokens cannot be checked: the database does not answer. Try again in a moment.")
        if not token.expired():
            self._used[token.id] = int(time.time()) // _USE_GRAIN * _USE_GRAIN
        return token

    async def create(self, name: str, grant: Grant, lifetime: timedelta | None) -> tuple[Token, str]:
        """Make a token; gives it and its secret, which is nowhere else."""
        secret = PREFIX + secrets.token_urlsafe(32)
        created = now()
        token = Token(
            id=new_id(),
            name=name,
            grant=grant,
            scope=_scope(grant),
            digest=hashlib.sha256(secret.encode()).digest(),
            created_at=created,
            expires_at=created + lifetime if lifetime is not None else None,
        )
        async with self._changing:
            if len(self._by_digest) >= MOST_TOKENS:
                raise TooManyTokens(f"There are {MOST_TOKENS} tokens already; revoke some that are no longer used.")
            try:
                await asyncio.to_thread(self._insert, token)
            except IntegrityError:
                raise NameTaken(f"There is a token named {name!r} already; revoke it first.") from None
            self._by_digest[token.digest] = token
        return token, secret

    async def revoke(self, token_id: str) -> Token | None:
        """End a token at once; gives the token that was, or None."""
        async with self._changing:
            token = next((known for known in self._by_digest.values() if known.id == token_id), None)
            if token is None:
                return None
            self._forget(token)
            await asyncio.to_thread(self._delete, token.id)
        return token

    def _forget(self, token: Token) -> None:
        self._by_digest.pop(token.digest, None)
        self._used.pop(token.id, None)
        self._on_gone(token)

    # In step with the database.

    async def _follow(self) -> None:
        written = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                await self._look()
                if self._used and time.monotonic() - written > _USE_GRAIN:
                    written = time.monotonic()
                    await asyncio.to_thread(self._write_uses)
            except Exception as error:  # whatever it is, the next look may succeed; without one, tokens end
                log.warning("agent tokens are not up to date: %s", error)
                await asyncio.sleep(5 * LOOK_EVERY)

    async def _look(self) -> None:
        async with self._changing:
            known = {token.id for token in self._by_digest.values()}
            asked_at = time.monotonic()
            ids, fresh = await asyncio.to_thread(self._read, known)
            for token in [token for token in self._by_digest.values() if token.id not in ids]:
                self._forget(token)
            self._by_digest.update((token.digest, token) for token in fresh)
            self._looked_at = asked_at

    def _read(self, known: set[str]) -> tuple[set[str], list[Token]]:
        """The ids of all tokens, and those that are new to us: a token never changes."""
        with self._storage.read() as connection:
            ids = set(connection.execute(select(agent_tokens.c.id)).scalars())
            if ids <= known:
                return ids, []
            rows = connection.execute(select(agent_tokens).where(agent_tokens.c.id.in_(ids - known))).all()
        return ids, [_token(row) for row in rows]

    def _insert(self, token: Token) -> None:
        row = {
            "id": token.id,
            "name": token.name,
            "digest": token.digest,
            "scope": msgspec.json.encode(token.grant).decode(),
            "created_at": to_micros(token.created_at),
            "expires_at": to_micros(token.expires_at) if token.expires_at is not None else None,
        }
        with self._storage.write() as connection:
            connection.execute(insert(agent_tokens).values(row))

    def _delete(self, token_id: str) -> None:
        with self._storage.write() as connection:
            connection.execute(delete(agent_tokens).where(agent_tokens.c.id == token_id))

    def _write_uses(self) -> None:
        column = agent_tokens.c.last_used_at
        uses = {token_id: used * 1_000_000 for token_id, used in self._used.copy().items()}
        if not uses:
            return
        with self._storage.write() as connection:
            for token_id, used in uses.items():
                # Another replica may have seen a later use.
                later = (agent_tokens.c.id == token_id, or_(column.is_(None), column < used))
                connection.execute(update(agent_tokens).where(*later).values(last_used_at=used))


def _token(row: Row[Any]) -> Token:
    grant = msgspec.json.decode(row.scope, type=Grant)
    return Token(
        id=row.id,
        name=row.name,
        grant=grant,
        scope=_scope(grant),
        digest=bytes(row.digest),
        created_at=from_micros(row.created_at),
        expires_at=from_micros(row.expires_at) if row.expires_at is not None else None,
        last_used_at=from_micros(row.last_used_at) if row.last_used_at is not None else None,
    )


def _scope(grant: Grant) -> Scope:
    return Scope(grant.servers, grant.tools, frozenset(grant.allow))
