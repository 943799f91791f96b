"""What can go wrong with a login? A person is needed, or patience, or another try. No text here quotes a secret."""

from __future__ import annotations

from mcpproxy.wire.errors import Unauthorized, WireError

_CLIENT_UNKNOWN = {"invalid_client", "unauthorized_client"}


class NeedsLogin(Unauthorized):
    """A person has to log in before this upstream answers (status 401) or answers this one call (403)."""

    def __init__(self, reason: str, challenge: str | None = None, *, status: int = 401) -> None:
        super().__init__(status, challenge)
        self.args = (reason,)
        self.reason = reason


class RefreshRefused(NeedsLogin):
    """The authorization server will not renew this grant, ever."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the authorization server no longer renews the login ({code})")
        self.client_unknown = code in _CLIENT_UNKNOWN


class AuthUnavailable(WireError):
    """The token could not be renewed just now; nobody needs to do anything but wait."""


class LoginFailed(Exception):
    """This login did not lead to a token. The text is for the person who tried."""
