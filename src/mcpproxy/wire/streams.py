"""How is a stream of events read without holding up everybody else? In small turns, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp

from mcpproxy.wire.errors import ChannelClosed
from mcpproxy.wire.events import MAX_JUNK_BYTES, Event, EventParser
from mcpproxy.wire.turns import BREATH, pieces


async def follow(
    response: aiohttp.ClientResponse,
    parser: EventParser,
    take: Callable[[Event], bool],
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Hand over every event until the stream ends, or until it is enough; `take` says whether one was of use."""
    async for chunk in response.content.iter_any():
        for piece in pieces(chunk):
            for event in parser.feed(piece):
                if take(event):
                    parser.junk = 0
            if enough():
                return
            if parser.flooding:
                raise ChannelClosed(
                    f"it sent more than {MAX_JUNK_BYTES} bytes of events that are no answer to anything"
                )
            if len(piece) < len(chunk):
                await asyncio.sleep(BREATH if parser.tedious else 0)
