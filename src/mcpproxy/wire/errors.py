"""What can go wrong on the way to an upstream? Each fault has one class, so that a caller can say which."""

from __future__ import annotations

from typing import Any


class WireError(Exception):
    """Something between us and one upstream went wrong."""


class ChannelClosed(WireError):
    """The connection ended before the answer came."""


class CallTimeout(WireError):
    """The upstream did not answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class InvalidAnswer(WireError):
    """The upstream sent something that is not a JSON-RPC answer."""


class AnswerTooLarge(WireError):
    """The upstream's answer is over the limit; it was thrown away unread."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than max_result_bytes ({limit} bytes)")
        self.limit = limit


class TooManyCalls(WireError):
    """So many calls wait for this upstream that one more would only make it worse."""


class RpcError(WireError):
    """The upstream answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class HttpStatus(WireError):
    """The upstream's HTTP server refused the request itself."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"HTTP {status}{': ' + detail if detail else ''}")
        self.status = status


class SessionExpired(HttpStatus):
    """The upstream forgot our session; a new handshake is needed. The request was not processed."""


class Unauthorized(HttpStatus):
    """The upstream wants (other) credentials."""

    def __init__(self, status: int, challenge: str | None) -> None:
        super().__init__(status, "the server asks for a login")
        self.challenge = challenge
