"""Who is this? The holder of the API key, or, where no key is asked for, anybody on this machine."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

from msgspec import Struct

from mcpproxy.config.models import Config
from mcpproxy.policy.access import Scope


class Identity(Struct, frozen=True):
    """What a caller proved to be."""

    key: str
    scope: Scope
    admin: bool = False


class Unidentified(Exception):
    """The caller gave no credential where one is needed, or one that is not known."""


_ADMIN = Identity("api-key", Scope.everything(), admin=True)
_ANYBODY = Identity("anonymous", Scope.everything())


class Gate:
    """Tells callers apart by the credential that they bring."""

    def __init__(self, settings: Callable[[], Config]) -> None:
        self._settings = settings

    def identify(self, authorization: str | None, api_key: str | None, *, required: bool) -> Identity:
        """The caller behind an `Authorization` or `X-API-Key` header. A wrong credential is never nobody."""
        given = api_key if api_key is not None else _bearer(authorization)
        if given is None:
            if required:
                raise Unidentified("This endpoint needs a key: send it as X-API-Key or as Authorization: Bearer.")
            return _ANYBODY
        # Hashed first, so that the comparison takes as long for any length.
        expected = hashlib.sha256(self._settings().api_key.encode()).digest()
        if secrets.compare_digest(hashlib.sha256(given.encode()).digest(), expected):
            return _ADMIN
        raise Unidentified("The key is not known. `mcpproxy config show` tells where the current one is kept.")


def _bearer(authorization: str | None) -> str | None:
    if authorization is None:
        return None
    scheme, _, value = authorization.partition(" ")
    # Another scheme is a credential that we do not know, not the absence of one.
    return value.strip() if scheme.lower() == "bearer" else authorization
