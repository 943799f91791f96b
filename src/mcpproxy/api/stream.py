"""How is a long answer sent? In pieces, as one of a few at a time, and not to someone who does not read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from fastapi.responses import StreamingResponse

from mcpproxy.asgi import Gone

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from mcpproxy.api.services import Turns

STALLED_SECONDS: Final = 30.0
"""How long a piece may wait for a client to take it."""


class TakingTurns(StreamingResponse):
    """A stream that holds one of its kind's turns until it ends."""

    def __init__(self, turns: Turns, pieces: AsyncGenerator[bytes, None], **more: Any) -> None:
        super().__init__(pieces, **more)
        self._turns = turns
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send everything, or end with whoever listens."""

        async def send_soon(message: Message) -> None:
            try:
                async with asyncio.timeout(STALLED_SECONDS):
                    await send(message)
            except TimeoutError:
                raise Gone from None

        with self._turns.one():
            async with contextlib.aclosing(self._pieces):
                with contextlib.suppress(Gone):
                    await super().__call__(scope, receive, send_soon)
