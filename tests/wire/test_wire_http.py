"""What can a streamable-HTTP server do to us? A call is sent once, answered once, and fails with a reason."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from tests.support.children import run, until
from tests.support.http_servers import HttpUpstream, event, free_port, hang_up, raw_answer, stream
from tests.wire.http_talk import CALL, LIMIT, call, replying, result_event, talking

from mcpproxy.wire.errors import CallTimeout, ChannelClosed, HttpStatus, InvalidAnswer
from mcpproxy.wire.http import HttpChannel

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
