"""What can a streamable-HTTP server do to us? A call is sent once, answered once, and fails with a reason."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.http_servers import HttpUpstream, answer, event, free_port, hang_up, raw_answer, serving, stream

from mcpproxy.wire.dispatch import ChannelDispatcher
from mcpproxy.wire.errors import (
    AnswerTooLarge,
    CallTimeout,
    ChannelClosed,
    HttpStatus,
    InvalidAnswer,
    RpcError,
    SessionExpired,
    Unauthorized,
)
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


# The good day.


def test_many_calls_at_once_each_get_their_own_answer() -> None:
    async def main() -> None:
        async with talking(HttpUpstream()) as channel:
            answers = await asyncio.gather(*(call(channel, n=number) for number in range(100)))
            assert answers == [{"n": number} for number in range(100)]

    run(main())


@pytest.mark.parametrize("result", [b'{"n":1.0,"m":0.10,"k":1e400}', b'{ "a" :\t1,"a":2 }', rb'{"t":"\ud83d"}'])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_result_arrives_byte_for_byte(result: bytes, streamed: bool) -> None:
    def respond(request: web.Request, message: dict[str, Any]) -> Any:
        if streamed:
            return stream(request, event(b'{"id":%d,"result":%s}' % (message["id"], result)))
        return raw_answer(message, result)

    async def main() -> None:
        async with talking(replying(respond)) as channel:
            assert await channel.call_raw(CALL, b"{}", timeout=20) == result

    run(main())


def test_a_streamed_answer_may_come_after_progress_and_in_pieces() -> None:
    def respond(request: web.Request, message: dict[str, Any]) -> Any:
        token = message["params"]["_meta"]["progressToken"]
        report = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1},
        }
        whole = b": hello\n\n" + event(report) + event(report) + result_event(message, a=1)
        return stream(request, *(whole[at : at + 7] for at in range(0, len(whole), 7)))

    async def main() -> None:
        async with talking(replying(respond)) as channel:
            reports: list[bytes] = []
            params = b'{"name":"echo"}'
            raw = await channel.call_raw(CALL, params, timeout=20, max_timeout=20, on_progress=reports.append)
            assert json.loads(raw)["structuredContent"] == {"a": 1}
            assert [json.loads(report)["progress"] for report in reports] == [1, 1]

    run(main())


def test_a_stream_is_left_as_soon_as_the_answer_is_there() -> None:
    async def respond(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        response = await stream(request, result_event(message, a=1))
        await asyncio.sleep(30)
        return response

    async def main() -> None:
        async with talking(replying(respond)) as channel:
            assert await call(channel) == {"a": 1}

    run(main())


def test_a_session_is_kept_and_ended() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with talking(upstream) as channel:
            params = b'{"protocolVersion":"2025-11-25"}'
            await channel.call_raw("initialize", params, timeout=20)
            channel.common_headers = {"MCP-Protocol-Version": "2025-11-25"}
            await call(channel)
            await channel.call_raw("ping", b"{}", timeout=20, headers={"mcp-protocol-version": "2025-06-18"})
        _, called, pinged, ended = upstream.seen
        assert [seen.headers["Mcp-Session-Id"] for seen in (called, pinged, ended)] == ["s1"] * 3
        assert called.headers["MCP-Protocol-Version"] == "2025-11-25"
        assert pinged.headers.getall("MCP-Protocol-Version") == ["2025-06-18"]
        assert ended.verb == "DELETE"

    run(main())


# A call is sent once.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed(status: int) -> None:
    async def main() -> None:
        upstream = replying(lambda request, message: web.Response(status=status, headers={"Location": "/elsewhere"}))
        async with talking(upstream) as channel:
            with pytest.raises(HttpStatus, match="it redirects to /elsewhere; set `url` to that"):
                await call(channel)
        assert len(upstream.seen) == 1

    run(main())


def test_a_call_is_not_sent_again_when_the_connection_breaks() -> None:
    async def main() -> None:
        upstream = replying(lambda request, message: hang_up(request))
        async with talking(upstream) as channel:
            await channel.call_raw("ping", b"{}", timeout=20)  # so that the connection that breaks is a used one
            with pytest.raises(ChannelClosed, match="the connection broke"):
                await call(channel)
            assert len(upstream.messages(CALL)) == 1
            upstream.on.clear()
            assert await call(channel, a=1) == {"a": 1}

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_that_dies_in_mid_answer_fails_that_call_only(streamed: bool) -> None:
    async def respond(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        kind = "text/event-stream" if streamed else "application/json"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        await response.write(b'data: {"id":1' if streamed else b'{"id":1,"resu')
        return await hang_up(request)

    async def main() -> None:
        upstream = replying(respond)
        async with talking(upstream) as channel:
            with pytest.raises(ChannelClosed, match="the connection broke: the answer ended half-way"):
                await call(channel)
            assert len(upstream.seen) == 1
            assert not channel.closed.done()

    run(main())


def test_nobody_there_fails_the_call_with_the_address() -> None:
    async def main() -> None:
        port = free_port()
        channel = HttpChannel(f"http://127.0.0.1:{port}/mcp?key=secret", headers={}, max_result_bytes=LIMIT)
        with pytest.raises(ChannelClosed) as refused:
            await call(channel)
        assert str(refused.value).startswith(f"cannot reach http://127.0.0.1:{port}: ")
        assert "secret" not in str(refused.value)
        await channel.close()

    run(main())


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        (b"Mcp-Session-Id: \xff\xfe\r\nContent-Type: application/json\r\n", InvalidAnswer),
        (b"Location: /\xff\r\n", HttpStatus),
        (b"Content-Type: text/\xff\r\n", InvalidAnswer),
        (b"X: " + b"x" * 100_000 + b"\r\n", ChannelClosed),
        (b"Content-Length: -1\r\n", ChannelClosed),
        (b"Content-Encoding: gzip\r\nContent-Type: application/json\r\n", ChannelClosed),
        (b"no colon here\r\n", ChannelClosed),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else "",
)
def test_odd_headers_fail_their_call_in_words_that_can_be_written(headers: bytes, fault: type[Exception]) -> None:
    async def main() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            status = b"307 Elsewhere" if b"Location" in headers else b"200 OK"
            body = b'{"id":1,"result":{}}'
            length = b"" if b"Length" in headers else b"Content-Length: %d\r\n" % len(body)
            writer.write(b"HTTP/1.1 %s\r\n%s%s\r\n%s" % (status, length, headers, body))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        channel = HttpChannel(f"http://127.0.0.1:{port}/", headers={}, max_result_bytes=LIMIT)
        with pytest.raises(fault) as failed:
            await call(channel)
        str(failed.value).encode()
        await channel.close()
        server.close()

    run(main())


# Refusals.


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


class Keys:
    """Credentials whose next key is better, as long as there is one."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)
        self.challenges: list[str | None] = []

    async def header(self) -> str | None:
        return f"Bearer {self.keys[0]}" if self.keys else None

    async def unauthorized(self, challenge: str | None) -> bool:
        self.challenges.append(challenge)
        self.keys = self.keys[1:]
        return bool(self.keys)


def guarded(headers: Mapping[str, str], status: int = 401) -> HttpUpstream:
    """A server that wants the key `good`."""

    def respond(request: web.Request, message: dict[str, Any]) -> web.Response:
        if request.headers.get("Authorization") == "Bearer good":
            return answer(message, {"structuredContent": "in"})
        return web.Response(status=status, headers=headers)

    return replying(respond)


def test_without_credentials_a_401_asks_for_a_login() -> None:
    async def main() -> None:
        upstream = guarded({"WWW-Authenticate": "Bearer realm=x"})
        async with talking(upstream) as channel:
            with pytest.raises(Unauthorized) as refused:
                await call(channel)
            assert (refused.value.status, refused.value.challenge) == (401, "Bearer realm=x")
        assert len(upstream.messages(CALL)) == 1

    run(main())


@pytest.mark.parametrize(
    ("status", "challenge"), [(401, "Bearer"), (403, 'Bearer error="insufficient_scope", scope="more"')]
)
def test_better_credentials_are_tried_once(status: int, challenge: str) -> None:
    async def main() -> None:
        keys = Keys("old", "good")
        upstream = guarded({"WWW-Authenticate": challenge}, status)
        async with talking(upstream, credentials=keys) as channel:
            assert await call(channel) == "in"
            assert keys.challenges == [challenge]
        keys = Keys("old", "bad", "good")
        async with talking(upstream, credentials=keys) as channel:
            with pytest.raises(Unauthorized):
                await call(channel)
        assert len(upstream.messages(CALL)) == 4

    run(main())


def test_the_operators_headers_and_the_passwords_of_an_address_go_out_and_a_login_wins_over_both() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        async with serving(upstream) as url:
            named = url.replace("://", "://me:pa%20ss@")
            for address, headers, credentials in (
                (url, {"x-Team": "1", "Accept": "*/*"}, None),
                (named, {}, None),
                (named, {"authorization": "Token own"}, None),
                (named, {"authorization": "Token own"}, Keys("key")),
            ):
                channel = HttpChannel(address, headers=headers, max_result_bytes=LIMIT, credentials=credentials)
                await channel.call_raw("ping", b"{}", timeout=20)
                await channel.close()
        first, *others = [seen.headers for seen in upstream.seen]
        assert first["X-Team"] == "1" and "Authorization" not in first
        assert first.getall("Accept") == ["application/json, text/event-stream"]
        assert [headers.getall("Authorization") for headers in others] == [
            ["Basic bWU6cGEgc3M="],
            ["Token own"],
            ["Bearer key"],
        ]

    run(main())


def test_the_passwords_of_netrc_are_nobodys_business(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    async def main() -> None:
        upstream = HttpUpstream()
        async with talking(upstream) as channel:
            await call(channel)
        assert "Authorization" not in upstream.seen[0].headers

    run(main())


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        proxy, upstream = HttpUpstream(), HttpUpstream()
        async with serving(proxy) as there, serving(upstream) as here:
            monkeypatch.setenv("http_proxy", there.removesuffix("/mcp"))
            monkeypatch.setenv("no_proxy", "other.invalid")
            for address, reached in (("http://far.invalid/mcp", True), (here, True), ("http://other.invalid/", False)):
                channel = HttpChannel(address, headers={}, max_result_bytes=LIMIT)
                if reached:
                    await channel.call_raw("ping", b"{}", timeout=20)
                else:
                    with pytest.raises(ChannelClosed, match="cannot reach"):
                        await channel.call_raw("ping", b"{}", timeout=20)
                await channel.close()
        assert [seen.headers["Host"] for seen in proxy.seen] == ["far.invalid"]
        assert len(upstream.seen) == 1

    run(main())


# Answers that are none.


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (b"<html>", "text/html", "content type is 'text/html'"),
        (b"", "application/octet-stream", "content type is 'application/octet-stream'"),
        (b"<html>", "application/json", "not JSON"),
        (b'{"id":1,"result":"\xff"}', "application/json", "not valid UTF-8"),
        (b"", "application/json", "not JSON"),
        (b'{"id":999,"result":{}}', "application/json", "does not answer the request"),
        (b"[]", "application/json", "does not answer the request"),
        (b'{"id":1}', "application/json", "neither a result nor an error"),
        (b"data: {\n\n", "text/event-stream", "ended before the answer came"),
        (b"", "text/event-stream", "ended before the answer came"),
    ],
)
def test_an_answer_that_is_none_says_what_is_wrong(body: bytes, kind: str, reason: str) -> None:
    async def main() -> None:
        async with talking(replying(lambda request, message: web.Response(body=body, content_type=kind))) as channel:
            with pytest.raises((InvalidAnswer, ChannelClosed), match=reason):
                await call(channel)

    run(main())


# Size.


async def _endless(request: web.Request, kind: str, piece: bytes, encoding: str = "") -> web.StreamResponse:
    headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    while True:
        await response.write(piece)


@pytest.mark.parametrize(
    "respond",
    [
        lambda request, message: raw_answer(message, b'"' + b"x" * (2 * MIB) + b'"'),
        lambda request, message: _endless(request, "application/json", b"x" * 65536),
        lambda request, message: _endless(request, "text/event-stream", b"data: " + b"x" * 65536),
        lambda request, message: _endless(request, "text/event-stream", b"data:\n" * 10_000),
        lambda request, message: _endless(request, "text/event-stream", b"data: x\n" * 10_000),
        lambda request, message: stream(request, event(b'{"id":%d,"result":"%s"}' % (message["id"], b"x" * (2 * MIB)))),
    ],
    ids=["length", "chunked", "endless event", "endless empty lines", "endless short lines", "event"],
)
def test_an_answer_over_the_limit_fails_its_call_only(respond: Any) -> None:
    async def main() -> None:
        upstream = replying(respond)
        async with talking(upstream) as channel:
            with pytest.raises(AnswerTooLarge):
                await call(channel)
            upstream.on.clear()
            assert await call(channel, a=1) == {"a": 1}

    run(main())


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_compressed_bomb_costs_little_more_than_the_limit(encoding: str, streamed: bool) -> None:
    size = 100 * MIB
    inner = b'data: {"id":1,"result":"' + b"x" * size if streamed else b'{"id":1,"result":"' + b"x" * size
    bomb = gzip.compress(inner, 1) if encoding == "gzip" else zlib.compress(inner, 1)
    del inner
    kind = "text/event-stream" if streamed else "application/json"

    def respond(request: web.Request, message: dict[str, Any]) -> web.Response:
        return web.Response(body=bomb, content_type=kind, headers={"Content-Encoding": encoding})

    async def main() -> None:
        async with talking(replying(respond)) as channel:
            await channel.call_raw("ping", b"{}", timeout=20)
            us = psutil.Process()
            before, most = us.memory_info().rss, 0
            lost = asyncio.create_task(call(channel))
            while not lost.done():
                most = max(most, us.memory_info().rss)
                await asyncio.sleep(0)
            with pytest.raises((AnswerTooLarge, ChannelClosed)):
                await lost
            assert most - before < 48 * MIB

    run(main())


# Streams that end early.


def resumable(*, retry: int = 1, polls: int = 1, end: str = "close") -> HttpUpstream:
    """A server that ends its stream before the answer, `polls` times, and goes on where it was told to."""
    upstream = HttpUpstream()
    waiting: dict[str, Any] = {}

    async def begin(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        waiting.update(message=message, polls=polls)
        response = await stream(request, b"id: e0\nretry: %d\ndata:\n\n" % retry)
        if end == "break":  # in the middle of the next event, whose id is therefore not to be resumed from
            await response.write(b'id: e1\ndata: {"half":')
            return await hang_up(request)
        return response

    async def go_on(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        waiting["polls"] -= 1
        number = int(request.headers["Last-Event-ID"].removeprefix("e"))
        if waiting["polls"]:
            return await stream(request, b"id: e%d\ndata:\n\n" % (number + 1))
        return await stream(request, result_event(waiting["message"], f"e{number + 1}", resumed=number))

    upstream.on = {CALL: begin, "GET": go_on}
    return upstream


@pytest.mark.parametrize("end", ["close", "break"])
def test_a_stream_that_ends_early_is_resumed_after_its_last_whole_event(end: str) -> None:
    async def main() -> None:
        upstream = resumable(end=end)
        async with talking(upstream) as channel:
            assert await call(channel) == {"resumed": 0}
        assert [seen.verb for seen in upstream.seen] == ["POST", "GET"]
        assert upstream.seen[1].headers["Accept"] == "text/event-stream"

    run(main())


def test_a_stream_may_be_resumed_as_often_as_it_gets_on() -> None:
    async def main() -> None:
        upstream = resumable(polls=12, retry=0)
        async with talking(upstream) as channel:
            assert await call(channel) == {"resumed": 11}

    run(main())


def test_a_stream_that_gets_nowhere_is_given_up() -> None:
    async def main() -> None:
        upstream = resumable()

        async def nothing(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return await stream(request, b": nothing new\n\n")

        upstream.on["GET"] = nothing
        async with talking(upstream) as channel:
            with pytest.raises(ChannelClosed, match="ended before the answer came"):
                await call(channel)
        assert len(upstream.seen) == 6

    run(main())


@pytest.mark.parametrize("status", [404, 405, 500])
def test_a_stream_that_cannot_be_resumed_never_looks_like_a_call_that_was_not_made(status: int) -> None:
    async def main() -> None:
        upstream = resumable()

        async def lost(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=status)

        upstream.on["GET"] = lost
        async with talking(upstream) as channel:
            await channel.call_raw("initialize", b'{"protocolVersion":"2025-11-25"}', timeout=20)
            with pytest.raises((ChannelClosed, HttpStatus)) as failed:
                await call(channel)
            assert not isinstance(failed.value, SessionExpired)

    run(main())


# Giving up.


def test_a_call_that_times_out_is_cancelled_in_the_handshake_era() -> None:
    async def main() -> None:
        upstream = replying(lambda request, message: asyncio.sleep(30))
        async with talking(upstream) as channel:
            with pytest.raises(CallTimeout):
                await call(channel, timeout=0.2)
            await until(lambda: upstream.messages("notifications/cancelled"))
            (told,) = upstream.messages("notifications/cancelled")
            assert told.message["params"] == {
                "requestId": upstream.messages(CALL)[0].message["id"],
                "reason": "timed out",
            }

    run(main())


def test_a_call_that_times_out_is_cancelled_in_the_modern_era_by_closing_its_stream() -> None:
    async def main() -> None:
        left = asyncio.Event()

        async def respond(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            response = await stream(request, b": still at it\n\n")
            try:
                while True:
                    await response.write(b": still at it\n\n")
                    await asyncio.sleep(0.01)
            except (ConnectionError, asyncio.CancelledError):
                left.set()
                raise

        upstream = replying(respond)
        async with talking(upstream) as channel:
            channel.modern = True
            with pytest.raises(CallTimeout):
                await call(channel, timeout=0.2)
            async with asyncio.timeout(20):
                await left.wait()
            assert len(upstream.seen) == 1

    run(main())


def test_progress_on_another_stream_after_the_deadline_disturbs_nobody() -> None:
    async def main() -> None:
        upstream = replying(lambda request, message: asyncio.sleep(30))
        upstream.streams = True
        async with talking(upstream) as channel:
            listening = asyncio.create_task(channel.listen())

            async def report() -> None:
                while True:
                    params = {"progressToken": 1, "progress": 1}
                    upstream.say.put_nowait(event({"method": "notifications/progress", "params": params}))
                    await asyncio.sleep(0.001)

            reporting = asyncio.create_task(report())
            for _ in range(3):
                channel._last_id = 0
                with pytest.raises(CallTimeout):
                    await channel.call_raw(CALL, b"{}", timeout=0.1, max_timeout=0.2, on_progress=lambda report: None)
            assert not listening.done()
            reporting.cancel()
            listening.cancel()

    run(main())


# The listening stream.


def test_what_the_server_says_on_its_own_is_heard_and_the_stream_is_taken_up_again() -> None:
    async def main() -> None:
        told: list[str] = []

        async def on_request(_context: object, _method: str, _params: Any) -> dict[str, Any]:
            return {}

        async def on_notify(_context: object, method: str, _params: Any) -> None:
            told.append(method)

        upstream = HttpUpstream()
        upstream.streams = True
        async with talking(upstream) as channel:
            tasks = [
                asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify)),
                asyncio.create_task(channel.listen()),
            ]
            upstream.say.put_nowait(b"retry: 1\n" + event({"method": "one"}, "e1"))
            await until(lambda: told == ["one"])
            upstream.say.put_nowait(b'id: e2\ndata: {"method":"half')
            upstream.say.put_nowait(b"")  # ends the stream
            await until(lambda: len(upstream.seen) == 2)
            assert upstream.seen[1].headers["Last-Event-ID"] == "e1"
            upstream.say.put_nowait(event({"method": "two"}, "e2"))
            await until(lambda: told == ["one", "two"])
            for task in tasks:
                task.cancel()

    run(main())


def test_an_oversized_event_does_not_end_the_listening_stream() -> None:
    async def main() -> None:
        told: list[str] = []

        async def on_request(_context: object, _method: str, _params: Any) -> dict[str, Any]:
            return {}

        async def on_notify(_context: object, method: str, _params: Any) -> None:
            told.append(method)

        upstream = HttpUpstream()
        upstream.streams = True
        async with talking(upstream) as channel:
            tasks = [
                asyncio.create_task(ChannelDispatcher(channel).run(on_request, on_notify)),
                asyncio.create_task(channel.listen()),
            ]
            upstream.say.put_nowait(event({"method": "large", "params": {"x": "x" * (2 * MIB)}}))
            upstream.say.put_nowait(event({"method": "small"}))
            await until(lambda: told == ["small"])
            assert len(upstream.seen) == 1
            for task in tasks:
                task.cancel()

    run(main())


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_without_a_listening_stream_is_asked_once(status: int) -> None:
    async def main() -> None:
        upstream = HttpUpstream()

        async def refuse(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=status)

        upstream.on["GET"] = refuse
        async with talking(upstream) as channel:
            await channel.listen()
        assert len(upstream.seen) == 1

    run(main())


def test_a_stream_that_ends_at_once_with_a_retry_of_zero_is_not_asked_without_a_break() -> None:
    async def main() -> None:
        upstream = HttpUpstream()

        async def end(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return await stream(request, b"retry: 0\n\n")

        upstream.on["GET"] = end
        async with talking(upstream) as channel:
            listening = asyncio.create_task(channel.listen())
            await asyncio.sleep(0.5)
            listening.cancel()
        assert len(upstream.seen) <= 7

    run(main())


def test_a_listening_stream_survives_a_fault_of_the_server() -> None:
    async def main() -> None:
        upstream = HttpUpstream()
        faults = [web.Response(status=502), web.Response(status=405)]

        async def refuse(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return faults.pop(0)

        upstream.on["GET"] = refuse
        async with talking(upstream) as channel:
            await channel.listen()
        assert len(upstream.seen) == 2

    run(main())
