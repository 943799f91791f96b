"""Does anything that a server may say break more than the call it was said to?"""

import asyncio
import base64
import json
import random
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import call, run, spawned
from tests.support.http_servers import HttpUpstream, serving

from mcpproxy.wire.dispatch import ChannelDispatcher
from mcpproxy.wire.errors import WireError
from mcpproxy.wire.http import HttpChannel

ROUNDS = 400
PIECES = [
    *b'{ } [ ] , : " \\ \\ud800 null true -1 0.5 1e999 NaN $ID "$ID"'.split(),
    *b'"id" "result" "error" "method" "params" "jsonrpc" "2.0" "code" "message" "_meta" "progressToken" "ping"'.split(),
    *b'"notifications/progress" "notifications/cancelled"'.split(),
    b'"notifications/tools/list_changed"',
    b'{"id":$ID,"result":',
    b'{"method":"ping","id":$ID,"params":',
    b'{"method":"notifications/message","params":{"level":"info","data":',
    b'"io.modelcontextprotocol/subscriptionId"',
    b"\n",
    b"\r\n",
    b" ",
    b"data: ",
    b"id: ",
    b"event: ",
    b"retry: ",
    b"\xff",
    b"\xef\xbb\xbf",
    b"9" * 5000,
    b"[" * 2000,
    b'{"a":' * 2000,
]


def nonsense(dice: random.Random) -> bytes:
    """Something that looks like a message, from afar."""
    if dice.random() < 0.2:
        return dice.randbytes(dice.randrange(200))
    return b"".join(dice.choices(PIECES, k=dice.randrange(1, 14)))


async def _hear(channel: Any) -> asyncio.Task[None]:
    async def on_request(_context: object, _method: str, _params: Any) -> dict[str, Any]:
        return {}

    async def on_notify(_context: object, _method: str, _params: Any) -> None: ...

    return asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_child_may_print_what_it_likes(loop: str) -> None:
    dice = random.Random(1)

    async def main() -> None:
        async with spawned(limit=20_000) as channel:
            hearing = await _hear(channel)
            for number in range(ROUNDS):
                line = nonsense(dice) + b'\n{"id":$ID,"result":{"end":1}}\n'
                arguments = {"data": base64.b64encode(line).decode()}
                params = json.dumps({"name": "raw", "arguments": arguments}).encode()
                try:
                    await channel.call_raw("tools/call", params, timeout=20, on_progress=lambda report: None)
                except WireError as error:
                    assert not channel.closed.done(), (line, error)
                if number % 20 == 0:
                    assert await call(channel, "echo", n=number) == {"n": number}
            assert not hearing.done()
            hearing.cancel()

    run(main(), loop)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_http_server_may_answer_what_it_likes(kind: str) -> None:
    dice = random.Random(2)
    upstream = HttpUpstream()

    async def respond(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        body = nonsense(dice).replace(b"$ID", b"%d" % message["id"]).replace(b"retry: ", b"")
        status = dice.choice([200, 200, 200, 400, 404, 500])
        return web.Response(status=status, body=body, headers={"Content-Type": kind})

    async def main() -> None:
        upstream.on["tools/call"] = respond
        async with serving(upstream) as url:
            channel = HttpChannel(url, headers={}, max_result_bytes=20_000)
            channel.modern = True  # nothing to resume, so nothing to wait for
            hearing = await _hear(channel)
            for _ in range(ROUNDS):
                try:
                    await channel.call_raw("tools/call", b"{}", timeout=20, on_progress=lambda report: None)
                except WireError as error:
                    str(error).encode()
            assert await channel.call_raw("ping", b"{}", timeout=20) == b"{}"
            assert not channel.closed.done() and not hearing.done()
            hearing.cancel()
            await channel.close()

    run(main())
