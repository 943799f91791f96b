"""A channel to an HTTP server that answers as a test wants it to."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from tests.support.http_servers import HttpUpstream, event, serving

from mcpproxy.wire.http import HttpChannel

LIMIT = 1024 * 1024
MIB = 1024 * 1024
CALL = "tools/call"


@asynccontextmanager
async def talking(upstream: HttpUpstream, limit: int = LIMIT, **more: Any) -> AsyncIterator[HttpChannel]:
    """A channel to a running server; no handshake is made."""
    async with serving(upstream) as url:
        channel = HttpChannel(url, headers={}, max_result_bytes=limit, **more)
        try:
            yield channel
        finally:
            await channel.close()


async def call(channel: HttpChannel, timeout: float = 20, **arguments: Any) -> Any:
    params = json.dumps({"name": "echo", "arguments": arguments}).encode()
    raw = await channel.call_raw(CALL, params, timeout=timeout, on_progress=lambda report: None)
    return json.loads(raw)["structuredContent"]


def replying(response: Any) -> HttpUpstream:
    """A server that answers every call with what the function makes of it."""
    upstream = HttpUpstream()

    async def handle(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        made = response(request, message)
        return made if isinstance(made, web.StreamResponse) else await made

    upstream.on[CALL] = handle
    return upstream


def result_event(message: dict[str, Any], event_id: str | None = None, **structured: Any) -> bytes:
    result = {"content": [], "structuredContent": structured}
    return event({"jsonrpc": "2.0", "id": message["id"], "result": result}, event_id)
