"""Where do an upstream's OAuth tokens rest between runs? In the system's keyring, or else in a 0600 file.

A server is known by its name and its URL together: tokens of one URL are never offered to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

log = logging.getLogger(__name__)

T = TypeVar("T")

_SERVICE = "mcpproxy"
# A locked keyring may wait for a person at the screen, or for ever where there is no screen.
_KEYRING_PATIENCE = 10.0
# Windows keeps 2,560 bytes of UTF-16 in one entry; the smallest limit we know of.
_PART = 1000
# Stands in a file in place of a grant, so that a proxy with no login never wakes the keyring.
_IN_KEYRING = '{"kept_in": "keyring"}'
_LOCK_POLL = 0.05
# Longer than any honest renewal: a request of 15 s and a keyring of 10.
_LOCK_PATIENCE = 40.0


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an authorization server gave us for one upstream, and what it takes to renew it there."""

    access_token: str
    refresh_token: str | None = None
    scope: str | None = None
    issued_at: float
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    """The client we are to the authorization server; None where it no longer knows us."""
    metadata: dict[str, Any] | None = None
    """The authorization server's own metadata, so that a refresh after a restart finds its token endpoint."""
    resource: dict[str, Any] | None = None
    """The upstream's metadata as a protected resource."""

    @property
    def header(self) -> str:
        """The value of the Authorization header."""
        return f"Bearer {self.access_token}"

    def __repr__(self) -> str:
        return f"Grant(scope={self.scope!r}, issued_at={self.issued_at!r}, expires_at={self.expires_at!r})"

    def __rich_repr__(self) -> Any:
        yield "scope", self.scope
        yield "expires_at", self.expires_at


@dataclass(frozen=True)
class Identity:
    """One upstream, as the store knows it."""

    server: str
    url: str

    @cached_property
    def key(self) -> str:
        """A name for files and keyring entries that a person can recognise and no two upstreams share."""
        digest = hashlib.sha256(f"{self.server}\0{self.url}".encode()).hexdigest()[:16]
        return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', self.server)[:40]}-{digest}"


class TokenStore:
    """Keeps one grant per upstream. Nothing here blocks the event loop."""

    def __init__(self, data_dir: Path) -> None:
        self._files = _Files(data_dir / "oauth")
        self._account = hashlib.sha256(str(data_dir.absolute()).encode()).hexdigest()[:8]
        self._keyring: _Keyring | None = None
        self._probed = False
        self._probing = asyncio.Lock()

    async def load(self, identity: Identity) -> Grant | None:
        """The grant kept for this upstream. The keyring is asked only where a file says that it has one."""
        kept = await _off_loop(lambda: self._files.read(identity.key))
        if not isinstance(kept, str):
            return kept
        if ring := await self._usable_keyring():
            text = await self._on_keyring(ring, lambda: ring.read(identity.key))
            return _decoded(text, ring.name) if text is not None else None
        log.warning("the login of %r is kept in a keyring that cannot be used now", identity.server)
        return None

    async def save(self, identity: Identity, grant: Grant) -> None:
        """Keep a grant in place of the one before. A disk that fails is told, not raised: the token still works."""
        text = json.dumps(msgspec.to_builtins(grant))
        in_ring = False
        if ring := await self._usable_keyring():
            in_ring = await self._on_keyring(ring, lambda: ring.write(identity.key, text)) or False
        try:
            await _off_loop(lambda: self._files.write(identity.key, _IN_KEYRING if in_ring else text))
        except OSError as error:
            log.warning("the login of %r cannot be kept and ends with this process: %s", identity.server, error)

    async def forget(self, identity: Identity) -> None:
        """Drop what is kept for this upstream."""
        kept = await _off_loop(lambda: self._files.read(identity.key))
        if kept == _IN_KEYRING and (ring := await self._usable_keyring()):
            await self._on_keyring(ring, lambda: ring.delete(identity.key))
        await _off_loop(lambda: self._files.delete(identity.key))

    @contextlib.asynccontextmanager
    async def exclusive(self, identity: Identity) -> AsyncIterator[None]:
        """Keep other processes from renewing the same grant: a rotated refresh token works only once."""
        try:
            path = self._files.prepared() / f"{identity.key}.lock"
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.warning("no lock for the login of %r: %s", identity.server, error)
            yield
            return
        try:
            deadline = time.monotonic() + _LOCK_PATIENCE
            while not _locked(handle):
                if time.monotonic() >= deadline:
                    log.warning("another process does not finish its work on the login of %r", identity.server)
                    break
                await asyncio.sleep(_LOCK_POLL)
            yield
        finally:
            os.close(handle)

    async def _usable_keyring(self) -> _Keyring | None:
        async with self._probing:
            if not self._probed:
                try:
                    self._keyring = await _off_loop(lambda: _Keyring.probe(self._account), _KEYRING_PATIENCE)
                except Exception as error:
                    log.info("no usable keyring (%s); tokens go to %s", type(error).__name__, self._files.folder)
                self._probed = True  # not before: a caller may walk away while the keyring still thinks
        return self._keyring

    async def _on_keyring(self, ring: _Keyring, work: Callable[[], T]) -> T | None:
        try:
            return await _off_loop(work, _KEYRING_PATIENCE)
        except Exception as error:  # backends raise what they like, and their texts may quote the value
            log.warning("%s failed (%s); tokens go to %s", ring.name, type(error).__name__, self._files.folder)
            self._keyring = None
            return None


class _Files:
    """One 0600 file per upstream in a 0700 folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepared(self) -> Path:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        return self.folder

    def read(self, key: str) -> Grant | str | None:
        """The grant in a file, or the word that it is in the keyring."""
        path = self.folder / f"{key}.json"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("%s cannot be read: %s", path, error)
            return None
        if data == _IN_KEYRING.encode():
            return _IN_KEYRING
        grant = _decoded(data, str(path))
        if grant is None:
            with contextlib.suppress(OSError):
                log.warning("it was set aside as %s", path.replace(path.with_suffix(".corrupt")))
        return grant

    def write(self, key: str, text: str) -> None:
        target = self.prepared() / f"{key}.json"
        fresh = target.with_suffix(f".{secrets.token_hex(4)}.new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    def delete(self, key: str) -> None:
        (self.folder / f"{key}.json").unlink(missing_ok=True)


class _Keyring:
    """Texts of any length in a keyring whose entries may be short.

    The entry under a key names a generation of parts. It is written last, so a reader sees the old text or the new one.
    """

    def __init__(self, backend: KeyringBackend, account: str) -> None:
        self._backend = backend
        self._account = account
        self.name = type(backend).__module__.removeprefix("keyring.backends.")

    @classmethod
    def probe(cls, account: str) -> _Keyring | None:
        """The system's keyring where it really keeps what it is given."""
        import keyring

        backend = keyring.get_keyring()
        # By keyring's own scale 1 is "recommended"; below are the null, failing, plain-text and terminal ones.
        if backend.priority < 1:
            return None
        ring, text = cls(backend, account), secrets.token_hex(8)
        ring.write("probe", text)
        kept = ring.read("probe")
        ring.delete("probe")
        return ring if kept == text else None

    def read(self, key: str) -> str | None:
        for _ in range(3):  # another process may switch generations under us
            if (head := self._get(key)) is None:
                return None
            parts = [self._get(name) for name in _part_names(key, head)]
            if None not in parts:
                return "".join(part for part in parts if part is not None)
        log.warning("the keyring lost parts of %r", key)
        return None

    def write(self, key: str, text: str) -> bool:
        before = self._get(key)
        parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
        head = f"{secrets.token_hex(4)}:{len(parts)}"
        for name, part in zip(_part_names(key, head), parts, strict=True):
            self._backend.set_password(_SERVICE, self._name(name), part)
        self._backend.set_password(_SERVICE, self._name(key), head)
        self._drop_parts(key, before)
        return True

    def delete(self, key: str) -> None:
        head = self._get(key)
        if head is not None:
            self._backend.delete_password(_SERVICE, self._name(key))
        self._drop_parts(key, head)

    def _drop_parts(self, key: str, head: str | None) -> None:
        from keyring.errors import PasswordDeleteError

        for name in _part_names(key, head or ""):
            with contextlib.suppress(PasswordDeleteError):
                self._backend.delete_password(_SERVICE, self._name(name))

    def _get(self, key: str) -> str | None:
        return self._backend.get_password(_SERVICE, self._name(key))

    def _name(self, key: str) -> str:
        return f"{key}@{self._account}"


def _part_names(key: str, head: str) -> list[str]:
    written = re.fullmatch(r"([0-9a-f]{8}):(\d{1,3})", head)
    return [f"{key}.{written[1]}.{index}" for index in range(int(written[2]))] if written else []


def _decoded(data: bytes | str, where: str) -> Grant | None:
    try:
        return msgspec.json.decode(data, type=Grant)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        log.warning("the login kept in %s is unreadable: it needs a new one", where)
        return None


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        log.warning("this file system keeps no locks: %s", error)
    return True


async def _off_loop(work: Callable[[], T], timeout: float | None = None) -> T:
    """Run blocking work in a thread that may hang without keeping the process from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="mcpproxy-tokens", daemon=True).start()
    async with asyncio.timeout(timeout):
        return await asyncio.shield(asyncio.wrap_future(future))
