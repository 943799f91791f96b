"""What went wrong with the database, in one sentence, and what to do about it."""

from __future__ import annotations

from typing import Final

from sqlalchemy.exc import DBAPIError

_LOCKED: Final = ("database is locked", "database table is locked", "lock timeout", "could not obtain lock")
_FULL: Final = ("database or disk is full", "no space left", "disk full", "could not extend file")
_READ_ONLY: Final = ("readonly database", "read-only transaction", "attempt to write a readonly")
_DAMAGED: Final = ("not a database", "malformed")
_UNREADABLE: Final = ("unable to open database", "disk i/o error")
# What SQLite calls "disk I/O error" is one of many things; these are about a write that the system refused.
_REFUSED_WRITES: Final = ("WRITE", "FSYNC", "DIR_FSYNC", "TRUNCATE", "SHMSIZE", "SHMOPEN", "SHMMAP")
_CUT_SHORT: Final = "SQLITE_IOERR_SHORT_READ"


class StorageError(Exception):
    """The database did not do what was asked of it."""


class StorageLocked(StorageError):
    """Another process holds the database for longer than we wait."""


class StorageUnreadable(StorageError):
    """The database is absent, unreachable, damaged, or of another version."""


class StorageDamaged(StorageUnreadable):
    """What is in the file is not what was written there."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what} {advice or 'Run `mcpproxy doctor`, which says what can be saved and how.'}")
        self.what = what
        self.advice = advice


class StorageUnwritable(StorageError):
    """The database can be read, but takes nothing new."""


class StorageReadOnly(StorageUnwritable):
    """We may read the database, and not write it."""


def explain(error: Exception, location: str) -> Exception:
    """Turn the error of a driver, or SQLAlchemy's around it, into ours; give back any other."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    kinds = {kind.__name__ for kind in type(cause).__mro__}
    if not kinds & {"DatabaseError", "InterfaceError"}:
        return error
    reason = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
    lower = reason.lower()
    name = str(getattr(cause, "sqlite_errorname", ""))
    if any(sign in lower for sign in _LOCKED):
        return StorageLocked(
            f"The database {location} is locked by another process ({reason}). "
            "Try again in a moment, or stop the process that holds it."
        )
    if any(sign in lower for sign in _FULL):
        return StorageUnwritable(
            f"The database {location} has no room left ({reason}). Free disk space; no restart is needed."
        )
    if name.removeprefix("SQLITE_IOERR_") in _REFUSED_WRITES:
        return StorageUnwritable(
            f"The database {location} cannot be written ({reason}, {name}). "
            "A quota or a limit is reached, or the disk fails: look at the system's log; no restart is needed."
        )
    if any(sign in lower for sign in _READ_ONLY):
        return StorageReadOnly(
            f"The database {location} cannot be written ({reason}). "
            "Check the owner and mode of the file and its directory, and whether the disk is mounted read-only."
        )
    if name == _CUT_SHORT or any(sign in lower for sign in _DAMAGED):
        return StorageDamaged(
            f"The database {location} cannot be read ({reason}): it is damaged, and was left as it is."
        )
    if any(sign in lower for sign in _UNREADABLE):
        return StorageUnreadable(
            f"The database {location} cannot be opened ({reason}). "
            "Check its path, and the owner and mode of the file and its directory."
        )
    if kinds & {"OperationalError", "InterfaceError"}:
        return StorageUnreadable(
            f"The database {location} does not answer ({reason}). "
            "Check that it runs and that the `storage` setting is right."
        )
    return error
