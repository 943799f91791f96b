"""What is a login to an HTTP upstream? Told apart from the HTTP client, which only those who need one load."""

from __future__ import annotations

from typing import Protocol


class Credentials(Protocol):
    """Who we are to an upstream that asks for a login."""

    async def header(self) -> str | None:
        """The Authorization header, or None where there is none yet."""

    async def unauthorized(self, challenge: str | None) -> bool:
        """The upstream refused it: True where another try makes sense."""
