"""Where tokens rest: the keyring where it works, a private file where it does not, and nothing breaks on damage."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import keyring.backends.fail
import keyring.backends.null
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError

from mcpproxy.upstream import tokens
from mcpproxy.upstream.tokens import Grant, Identity, TokenStore

NOTES = Identity("notes", "https://notes.example/mcp")
GRANT = Grant(
    access_token="CANARY-access-" + "a" * 3000,
    refresh_token="CANARY-refresh",
    scope="read ünïcode",
    issued_at=1000.0,
    expires_at=4600.0,
    client={"client_id": "us", "client_secret": "CANARY-client"},
    metadata={"issuer": "https://as.example"},
)


class MemoryKeyring(KeyringBackend):
    """A keyring as small as the smallest real one: Windows keeps 2,560 bytes of UTF-16 in an entry."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries: dict[tuple[str, str], str] = {}
        self.broken = False

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.broken or len(password.encode("utf-16-le")) > 2560:
            raise PasswordSetError(f"cannot keep {password}")
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.entries.pop((service, username), None) is None:
            raise PasswordDeleteError(username)


class PlainTextKeyring(MemoryKeyring):
    """Works, but keyring itself does not recommend it."""

    priority = 0.5


class HangingKeyring(MemoryKeyring):
    """Waits for a person who never comes."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.released.wait(30)
        return None


@pytest.fixture(autouse=True)
def no_keyring() -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())  # type: ignore[no-untyped-call]


@pytest.fixture
def ring() -> MemoryKeyring:
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    return backend


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingKeyring]:
    monkeypatch.setattr(tokens, "_KEYRING_PATIENCE", 0.1)
    backend = HangingKeyring()
    keyring.set_keyring(backend)
    yield backend
    backend.released.set()


def save(folder: Path, grant: Grant = GRANT, identity: Identity = NOTES) -> None:
    asyncio.run(TokenStore(folder).save(identity, grant))


def load(folder: Path, identity: Identity = NOTES) -> Grant | None:
    return asyncio.run(TokenStore(folder).load(identity))


def files(folder: Path) -> list[Path]:
    return sorted((folder / "oauth").glob("*")) if (folder / "oauth").exists() else []


def test_a_grant_comes_back_whole_from_the_keyring_and_no_file_holds_it(tmp_path: Path, ring: MemoryKeyring) -> None:
    save(tmp_path)
    assert load(tmp_path) == GRANT
    assert "CANARY" not in "".join(file.read_text() for file in files(tmp_path))
    assert "CANARY-refresh" in "".join(ring.entries.values())


def test_the_keyring_keeps_no_parts_of_older_grants(tmp_path: Path, ring: MemoryKeyring) -> None:
    save(tmp_path)
    kept = len(ring.entries)
    save(tmp_path)
    assert len(ring.entries) == kept
    asyncio.run(TokenStore(tmp_path).forget(NOTES))
    assert ring.entries == {}
    assert files(tmp_path) == []
    assert load(tmp_path) is None


def test_two_data_dirs_do_not_share_a_keyring_entry(tmp_path: Path, ring: MemoryKeyring) -> None:
    save(tmp_path / "work")
    assert load(tmp_path / "home") is None


def test_a_keyring_with_a_lost_part_means_no_token(tmp_path: Path, ring: MemoryKeyring) -> None:
    save(tmp_path)
    lost = next(entry for entry in ring.entries if entry[1].split("@")[0].endswith(".1"))
    del ring.entries[lost]
    assert load(tmp_path) is None


@pytest.mark.parametrize(
    "backend", [keyring.backends.fail.Keyring, keyring.backends.null.Keyring, PlainTextKeyring], ids=str
)
def test_without_a_usable_keyring_a_private_file_holds_the_grant(
    tmp_path: Path, backend: Callable[[], KeyringBackend]
) -> None:
    keyring.set_keyring(backend())
    save(tmp_path)
    [file] = files(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.name.startswith("notes-")
    assert load(tmp_path) == GRANT


def test_a_keyring_that_waits_for_ever_is_left_alone(tmp_path: Path, hanging: HangingKeyring) -> None:
    save(tmp_path)
    assert load(tmp_path) == GRANT
    assert len(files(tmp_path)) == 1


def test_a_keyring_that_breaks_later_hands_over_to_the_file(
    tmp_path: Path, ring: MemoryKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        store = TokenStore(tmp_path)
        await store.save(NOTES, GRANT)
        ring.broken = True
        renewed = Grant(access_token="CANARY-renewed", issued_at=2000.0)
        await store.save(NOTES, renewed)
        assert await store.load(NOTES) == renewed
        ring.broken = False
        assert await TokenStore(tmp_path).load(NOTES) == renewed  # not the older one that the keyring still has

    asyncio.run(story())
    assert "PasswordSetError" in caplog.text
    assert "CANARY" not in caplog.text


def test_a_grant_moves_from_the_file_to_a_keyring_that_appears(tmp_path: Path) -> None:
    save(tmp_path)
    keyring.set_keyring(MemoryKeyring())
    found = load(tmp_path)
    assert found == GRANT
    save(tmp_path)
    assert "CANARY" not in files(tmp_path)[0].read_text()
    assert load(tmp_path) == GRANT


def test_a_proxy_without_logins_never_touches_the_keyring(tmp_path: Path, ring: MemoryKeyring) -> None:
    def untouchable(service: str, username: str) -> str | None:
        raise AssertionError("the keyring was asked")

    ring.get_password = untouchable  # type: ignore[method-assign]
    store = TokenStore(tmp_path)
    assert asyncio.run(store.load(NOTES)) is None
    assert ring.entries == {}


def test_a_login_in_a_keyring_that_is_gone_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keyring.set_keyring(MemoryKeyring())
    save(tmp_path)
    keyring.set_keyring(keyring.backends.fail.Keyring())  # type: ignore[no-untyped-call]
    assert load(tmp_path) is None
    assert "kept in a keyring that cannot be used now" in caplog.text
    assert [file.suffix for file in files(tmp_path)] == [".json"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b'{"access_token": "CANARY-half', b"\xff\xfe CANARY", b'{"access_token": ["CANARY"]}', b"[" * 100_000],
)
def test_a_damaged_file_is_set_aside_and_means_no_token(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    save(tmp_path)
    [file] = files(tmp_path)
    file.write_bytes(damage)
    with caplog.at_level(logging.DEBUG):
        assert load(tmp_path) is None
    assert [path.suffix for path in files(tmp_path)] == [".corrupt"]
    assert str(file) in caplog.text
    assert "Traceback" not in caplog.text
    assert "CANARY" not in caplog.text
    save(tmp_path)
    assert load(tmp_path) == GRANT


def test_tokens_of_one_url_or_name_are_not_found_under_another(tmp_path: Path) -> None:
    save(tmp_path)
    assert load(tmp_path, Identity("notes", "https://elsewhere.example/mcp")) is None
    assert load(tmp_path, Identity("other", NOTES.url)) is None
    strange = [Identity("../../etc/passwd", NOTES.url), Identity("Ünïcode 日本", NOTES.url), Identity("a b", NOTES.url)]
    for identity in strange:
        save(tmp_path, identity=identity)
        assert load(tmp_path, identity) == GRANT
    assert len(files(tmp_path)) == 1 + len(strange)


def test_a_data_dir_that_cannot_be_written_is_told_and_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "oauth").write_text("a file where the folder should be")
    save(tmp_path)
    assert "cannot be kept" in caplog.text
    assert load(tmp_path) is None
    assert "CANARY" not in caplog.text


def test_a_grant_shows_no_secret_when_printed() -> None:
    assert "CANARY" not in repr(GRANT)
    assert "CANARY" not in str(list(GRANT.__rich_repr__()))


def test_the_store_is_importable_without_the_sdk() -> None:
    program = "import sys, mcpproxy.upstream.tokens; sys.exit('mcp' in sys.modules or 'keyring' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
