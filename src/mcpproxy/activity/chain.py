"""Was anything altered? Each record carries the hash of its predecessor, and signed statements vouch for the ends.

docs/activity.md describes the bytes, so that others can check them without this code.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from msgspec import Struct
from msgspec.json import encode

from mcpproxy.activity.record import Linked, Stored, from_micros
from mcpproxy.storage.errors import StorageUnreadable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

GENESIS: Final = bytes(32)
"""What the first record of a chain, and the first start of all, carry as the hash of their predecessor."""
KEY_FILE: Final = "activity-signing.key"
PUBLIC_KEY_FILE: Final = "activity-signing.pub"

Kind = Literal["start", "head", "end", "pruned"]

_HASHES_LENGTH: Final = len(f',"prev_hash":"{"0" * 64}","hash":"{"0" * 64}"}}')


def link(record: Linked, previous: bytes) -> bytes:
    """The hash of a record that follows the one with the given hash."""
    return sha256(previous + encode(record)).digest()


def hash_of(record: Stored) -> bytes:
    """The hash that a stored record should have, from its own content and its stored predecessor's hash."""
    line = encode(record)
    return sha256(bytes.fromhex(record.prev_hash) + line[:-_HASHES_LENGTH] + b"}").digest()


class Statement(Struct, frozen=True, kw_only=True):
    """A signed word about one chain: `start` that it began, `head` and `end` how far it went, `pruned` up to where
    retention removed it. The hash is that of the record at the position; in a `start`, of the start before it."""

    kind: Kind
    writer: str
    position: int
    hash: bytes
    signed_at: int
    key: bytes
    signature: bytes = b""

    def shown(self) -> dict[str, Any]:
        """The statement as others may read, keep and check it."""
        return {
            "kind": self.kind,
            "writer": self.writer,
            "position": self.position,
            "hash": self.hash.hex(),
            "signed_at": self._moment(),
            "key": self.key.hex(),
            "signature": self.signature.hex(),
        }

    def message(self) -> bytes:
        """The bytes that are signed."""
        words = ("mcpproxy activity v1", self.kind, self.writer, str(self.position), self.hash.hex(), self._moment())
        return "".join(f"{word}\n" for word in words).encode()

    def _moment(self) -> str:
        return encode(from_micros(self.signed_at)).decode().strip('"')

    def is_signed(self) -> bool:
        """Whether the signature is that of the key it names."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.key).verify(self.signature, self.message())
        except (InvalidSignature, ValueError):
            return False
        return True


class Signer:
    """The data directory's Ed25519 key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public_key = key.public_key().public_bytes_raw()

    @classmethod
    def load(cls, data_dir: Path) -> Self:
        """Read the key, making one where there is none yet."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = data_dir / KEY_FILE
        try:
            if not path.exists():
                data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                _create_key(path)
            signer = cls(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text())))
            public = data_dir / PUBLIC_KEY_FILE
            if not public.exists():
                public.write_text(signer.public_key.hex() + "\n")
        except OSError as error:
            reason = f"The signing key {path} cannot be used ({error.strerror}). Check its owner and mode."
            raise StorageUnreadable(reason) from error
        except ValueError as error:
            raise StorageUnreadable(
                f"The signing key {path} is damaged. Put the right one back, or remove it to begin with a new one."
            ) from error
        return signer

    def sign(self, kind: Kind, writer: str, position: int, hash_: bytes, signed_at: int) -> Statement:
        """A signed statement."""
        unsigned = Statement(
            kind=kind, writer=writer, position=position, hash=hash_, signed_at=signed_at, key=self.public_key
        )
        return Statement(
            kind=kind,
            writer=writer,
            position=position,
            hash=hash_,
            signed_at=signed_at,
            key=self.public_key,
            signature=self._key.sign(unsigned.message()),
        )


def public_key_in(data_dir: Path) -> bytes | None:
    """The public key of a data directory; None where nothing was signed there yet."""
    try:
        return bytes.fromhex((data_dir / PUBLIC_KEY_FILE).read_text())
    except FileNotFoundError:
        return None


def _create_key(path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(Ed25519PrivateKey.generate().private_bytes_raw().hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        # Unlike a rename, this cannot replace the key of a process that was quicker.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
