"""What does a refusal of an HTTP server mean? Its status and words are told, and a lost session is known as one."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.http_servers import HttpUpstream
from tests.wire.http_talk import call, replying, talking

from mcpproxy.wire.errors import HttpStatus, RpcError, SessionExpired


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, b"oh\n no", "HTTP 500: oh no"),
        (503, b"", "HTTP 503"),
        (413, b"<html>" + b"x" * 100_000, "HTTP 413: <html>xxx"),
        (400, b"[]", "HTTP 400: []"),
        (400, b'{"id":1}', 'HTTP 400: {"id":1}'),
        (404, b"nothing here", "HTTP 404: nothing here"),
        (403, b"not you", "HTTP 403: not you"),
    ],
)
def test_a_refusal_says_its_status_and_its_words(status: int, body: bytes, reason: str) -> None:
    async def main() -> None:
        async with talking(replying(lambda request, message: web.Response(status=status, body=body))) as channel:
            with pytest.raises(HttpStatus) as refused:
                await call(channel)
            assert str(refused.value).startswith(reason) and len(str(refused.value)) < 300
            assert refused.value.status == status

    run(main())


def test_a_refusal_with_a_json_rpc_error_is_that_error() -> None:
    def respond(request: web.Request, message: dict[str, Any]) -> web.Response:
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32020, "message": "header missing", "data": {"a": 1}}}
        return web.json_response(body, status=400)

    async def main() -> None:
        async with talking(replying(respond)) as channel:
            with pytest.raises(RpcError, match="header missing") as refused:
                await call(channel)
            assert (refused.value.code, refused.value.data) == (-32020, {"a": 1})

    run(main())


def test_a_404_is_an_expired_session_only_where_there_was_one() -> None:
    async def main() -> None:
        upstream = replying(lambda request, message: web.Response(status=404))
        async with talking(upstream) as channel:
            with pytest.raises(HttpStatus) as refused:
                await call(channel)
            assert not isinstance(refused.value, SessionExpired)
            await channel.call_raw("initialize", b'{"protocolVersion":"2025-11-25"}', timeout=20)
            with pytest.raises(SessionExpired):
                await call(channel)
            channel.modern = True  # 2026-07-28 knows no sessions
            with pytest.raises(HttpStatus) as refused:
                await call(channel)
            assert not isinstance(refused.value, SessionExpired)
            assert "Mcp-Session-Id" not in upstream.seen[-1].headers

    run(main())


def test_a_400_in_words_is_an_expired_session_only_where_the_call_was_refused_at_the_door() -> None:
    async def main() -> None:
        refusals: list[tuple[bool, str]] = [
            (False, "Bad Request: No valid session ID provided"),
            (True, "the database session was lost half way"),
            (False, "Bad Request: no such tool"),
        ]

        def respond(request: web.Request, message: dict[str, Any]) -> web.Response:
            carried_out, words = refusals.pop(0)
            error = {"code": -32000, "message": words}
            return web.json_response({"id": message["id"] if carried_out else None, "error": error}, status=400)

        async with talking(replying(respond)) as channel:
            await channel.call_raw("initialize", b'{"protocolVersion":"2025-11-25"}', timeout=20)
            with pytest.raises(SessionExpired):
                await call(channel)
            for words in ("half way", "no such tool"):
                with pytest.raises(RpcError, match=words):
                    await call(channel)

    run(main())


def test_a_listening_stream_that_is_refused_after_it_was_heard_means_a_new_server() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        upstream.streams = True
        async with talking(upstream) as channel:
            await channel.call_raw("initialize", b'{"protocolVersion":"2025-11-25"}', timeout=20)
            listening = asyncio.create_task(channel.listen())
            upstream.say.put_nowait(b"retry: 1\n\n")
            upstream.say.put_nowait(b"")

            async def forget(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
                return web.Response(status=404)

            await until(lambda: len(upstream.seen) > 1)
            upstream.on["GET"] = forget
            await listening
            assert await channel.closed == "the server no longer knows our session"

    run(main())
