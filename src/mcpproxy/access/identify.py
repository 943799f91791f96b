"""Who is this? The operator by key, socket or browser, an agent by its token, or anybody where no key is asked for."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

from msgspec import Struct

from mcpproxy.access.tokens import Tokens, TokensUnknown
from mcpproxy.config.models import Config
from mcpproxy.policy.access import Scope


class Identity(Struct, frozen=True):
    """What a caller proved to be."""

    key: str
    scope: Scope
    admin: bool = False
    browser: bool = False
    """By a session, which ends some day; so it must not open others."""


class Unidentified(Exception):
    """The caller gave no credential where one is needed, or one that is not known."""

    status = 401


class CannotIdentify(Unidentified):
    """Nobody can say now whether the credential is good."""

    status = 503


OPERATOR = Identity("api-key", Scope.everything(), admin=True)
OPERATORS_BROWSER = Identity("api-key", Scope.everything(), admin=True, browser=True)
_ANYBODY = Identity("anonymous", Scope.everything())


class Gate:
    """Tells callers apart by the credential that they bring."""

    def __init__(self, settings: Callable[[], Config], tokens: Tokens) -> None:
        self._settings = settings
        self._tokens = tokens

    def identify(
        self, authorization: str | None, api_key: str | None, *, required: bool, local: bool = False
    ) -> Identity:
        """The caller behind an `Authorization` or `X-API-Key` header. A wrong credential is never nobody.

        `local`: the request came over the unix socket, which only the operator's own user can open.
        """
        given = api_key if api_key is not None else _bearer(authorization)
        if given is None:
            if local:
                return OPERATOR
            if required:
                raise Unidentified("This endpoint needs a key: send it as X-API-Key or as Authorization: Bearer.")
            return _ANYBODY
        return self._holder(given)

    def is_key(self, given: str) -> bool:
        """Whether this is the API key."""
        # Hashed first, so that the comparison takes as long for any length.
        expected = hashlib.sha256(self._settings().api_key.encode()).digest()
        return secrets.compare_digest(hashlib.sha256(given.encode()).digest(), expected)

    def _holder(self, given: str) -> Identity:
        if self.is_key(given):
            return OPERATOR
        try:
            token = self._tokens.find(given)
        except TokensUnknown as error:
            raise CannotIdentify(str(error)) from None
        if token is None:
            raise Unidentified(
                "The key or token is not known, or was revoked. `mcpproxy config path` tells where the API key is "
                "kept; `mcpproxy token list` shows the tokens."
            )
        if token.expired():
            raise Unidentified("The token has expired. Ask the operator for a new one.")
        return Identity(token.key, token.scope)


def _bearer(authorization: str | None) -> str | None:
    if authorization is None:
        return None
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "bearer":
        # A credential that we do not know is not the absence of one.
        raise Unidentified("This kind of Authorization is not known here: send Bearer and the key.")
    return value.strip()
