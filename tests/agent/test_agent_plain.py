"""Plain requests are answered straight from the connection: as by the long way, and with nothing left behind."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from tests.agent.far_end import Seen, converse, quiet, watch
from tests.agent.segments import BYE, HEALTH, SLOW, Requests, body_of
from tests.agent.wire_client import ACCEPT, WireClient
from tests.calls.proxy import KEY, Proxy, echo, running
from tests.faults.clients import bad, connect, rest, status
from tests.support.children import until

from mcpproxy import http1
from mcpproxy.agent.http import HttpFace
from mcpproxy.agent.lane import Lane
from mcpproxy.listen import HostCheck, serve_http


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": True}  # what the product runs on


class House(NamedTuple):
    """A proxy, and the requests of a session with it."""

    proxy: Proxy
    requests: Requests
    record: Path


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    home = tmp_path_factory.mktemp("plain")
    servers = [echo(), {"name": "bad", **bad("never", "big", record=str(home / "record"))}]
    async with running(home / "home", servers, require_mcp_auth=True) as proxy:
        async with aiohttp.ClientSession(headers={"X-API-Key": KEY}) as http:
            client = WireClient(http, proxy.mcp, era="legacy", lane=True)
            await client.connect()
        yield House(proxy, Requests(client.headers["Mcp-Session-Id"]), home / "record")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return watch(monkeypatch)


@pytest.mark.anyio
async def test_every_talk_gets_the_same_answers_both_ways(
    house: House, seen: Seen, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http1, "_BODY_SECONDS", 60.0)
    wrong: list[str] = []
    for talk in house.requests.talks():
        seen.taken = 0
        short = await converse(house.proxy, talk, seen)
        taken = seen.taken
        with pytest.MonkeyPatch.context() as switch:
            switch.setattr(HttpFace, "take", lambda *_, **__: None)
            long = await converse(house.proxy, talk, seen)
        if _nameless(short) != _nameless(long) or talk.taken not in (None, taken) or not long.startswith(b"HTTP/1.1 "):
            wrong.append(f"{talk.about}: {taken} of {talk.taken} taken\n{short[:1500]!r}\n{long[:1500]!r}")
    assert not wrong, "\n\n".join(wrong)
    await until(lambda: all(map(quiet, seen.connections)), "nothing is left")
    assert not [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]


def _nameless(answers: bytes) -> bytes:
    """Without the names that we give to requests that have none."""
    return re.sub(rb"\b[0-9A-Z]{26}\b", b"ULID", answers)


@pytest.mark.anyio
async def test_a_late_body_goes_the_long_way(house: House, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "_BODY_SECONDS", 0.01)
    reader, writer = await connect(house.proxy.url)
    writer.write(house.requests.head(len(body_of())))
    await until(lambda: seen.connections and seen.last._parsing, "uvicorn has the head")
    writer.write(body_of().encode() + BYE)
    assert b"plain done" in await rest(reader)
    writer.close()
    assert seen.taken == 0


@pytest.mark.anyio
@pytest.mark.parametrize("event", ["timeout_keep_alive_handler", "shutdown"])
async def test_a_request_of_which_the_head_has_come_is_answered(
    house: House, seen: Seen, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    monkeypatch.setattr(http1, "_BODY_SECONDS", 60.0)
    reader, writer = await connect(house.proxy.url)
    writer.write(house.requests.head(len(body_of())))
    await until(lambda: seen.connections and seen.last._waiting, "the head is read")
    seen.last.timeout_keep_alive = 0
    getattr(seen.last, event)()
    writer.write(body_of().encode())
    assert b"plain done" in await rest(reader)
    writer.close()
    await until(lambda: quiet(seen.last), "nothing is left")


@pytest.mark.anyio
async def test_a_connection_is_closed_when_idle_and_not_in_a_call(house: House, seen: Seen) -> None:
    reader, writer = await connect(house.proxy.url)
    await until(lambda: seen.connections)
    seen.last.timeout_keep_alive = 0.1  # type: ignore[assignment]
    sent = 0
    for pause in (1.0, 0.3):  # the second is held behind the first, and so the clock runs while it is made
        slow = house.requests.whole(body=body_of(f'{{"name":"echo:slow","args":{{"pause":{pause}}}}}'))
        writer.write(slow)
        sent += len(slow)
        await until(lambda: seen.size == sent)  # noqa: B023
    assert (await rest(reader)).count(b'"done"') == 2
    writer.close()
    assert seen.taken == 2
    await until(lambda: quiet(seen.last), "nothing is left")


@pytest.mark.anyio
async def test_a_call_is_answered_at_shutdown_and_its_connection_closed(house: House, seen: Seen) -> None:
    reader, writer = await connect(house.proxy.url)
    writer.write(house.requests.whole(body=body_of(SLOW)))
    await until(lambda: seen.taken == 1)
    seen.last.shutdown()
    assert (await rest(reader)).endswith(b'"done"}]}}')
    writer.close()
    await until(lambda: quiet(seen.last), "nothing is left")


@pytest.mark.anyio
@pytest.mark.parametrize("leave", ["close", "abort", "write_eof"])
@pytest.mark.parametrize("more", [b"", HEALTH], ids=["nothing", "another"])
@pytest.mark.parametrize("accept", [ACCEPT, "*/*"], ids=["short", "long"])
async def test_who_leaves_is_missed_whatever_was_sent_before(
    house: House, seen: Seen, leave: str, more: bytes, accept: str
) -> None:
    begun, cancelled = heard(house, "tools/call"), heard(house, "notifications/cancelled")
    call = house.requests.whole(body=body_of('{"name":"bad:never"}'), Accept=accept)
    _, writer = await connect(house.proxy.url)
    writer.write(call)
    await until(lambda: heard(house, "tools/call") > begun, "the upstream has the call")
    writer.write(more)
    await until(lambda: seen.size == len(call + more))
    getattr(writer.transport, leave)()
    await until(lambda: heard(house, "notifications/cancelled") > cancelled, "the upstream is told")
    await until(lambda: quiet(seen.last), "nothing is left")
    writer.close()


def heard(house: House, method: str) -> int:
    """How often the upstream was told this."""
    return house.record.read_text().count(f'"{method}"')


@pytest.mark.anyio
async def test_what_is_held_behind_a_call_has_a_bound_and_is_not_lost(house: House, seen: Seen) -> None:
    reader, writer = await connect(house.proxy.url)
    writer.write(house.requests.whole(body=body_of('{"name":"echo:slow","args":{"pause":0.5}}')))
    await until(lambda: seen.taken == 1)
    long = house.requests.whole(body=body_of(f'{{"name":"echo:reads","args":{{"x":"{"y" * 100_000}"}}}}'))
    writer.write(long * 20 + BYE)
    most = 0
    reading = asyncio.create_task(rest(reader))
    while not reading.done():
        most = max(most, len(seen.last._held))
        await asyncio.sleep(0.001)
    assert (await reading).count(b"reads done") == 20
    assert most < len(long) * 6
    writer.close()


@pytest.mark.anyio
async def test_who_gives_up_an_answer_that_waits_for_room_is_not_left_waiting(house: House, seen: Seen) -> None:
    reader, writer = await connect(house.proxy.url, window=4096)
    writer.write(house.requests.whole(body=body_of('{"name":"bad:big","args":{"size":8000000}}')))
    await until(lambda: seen.connections and seen.last.flow.write_paused, "nobody reads the first answer")
    writer.write(house.requests.whole(body=body_of(request_id=7)))
    await until(lambda: seen.last.flow._is_writable_event._waiters, "the second waits for room")
    given_up = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
    other = await connect(house.proxy.url)
    assert await status(other, house.requests.whole(body=given_up)) == 202
    other[1].close()
    assert (await rest(reader)).endswith(b"Internal Server Error")
    writer.close()


@pytest.mark.anyio
@pytest.mark.parametrize("line", [b"", b"X-More: more\r\n"], ids=["one line", "many lines"])
async def test_a_head_without_end_is_refused(house: House, seen: Seen, line: bytes) -> None:
    reader, writer = await connect(house.proxy.url)
    writer.write(b"POST /mcp HTTP/1.1\r\n" + (line or b"X-Long: "))
    await until(lambda: seen.size)
    for _ in range(100):
        size = seen.size
        writer.write((line or b"x") * 1000)
        await until(lambda: seen.size > size or seen.last.transport.is_closing())  # noqa: B023
        if seen.last.transport.is_closing():
            break
    assert (await rest(reader)).startswith(b"HTTP/1.1 431 ")
    writer.close()
    await until(lambda: quiet(seen.last), "nothing is left")


@pytest.mark.anyio
async def test_what_follows_a_body_is_not_kept(house: House, seen: Seen) -> None:
    connection = await connect(house.proxy.url)
    head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert await status(connection, head + b"0\r\n" + b"X-More: more\r\n" * 1000 + b"\r\n") == 200
    assert [name for name, _ in seen.last.headers] == [b"host", b"transfer-encoding"]
    connection[1].close()


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["read", "run"])
async def test_a_fault_of_our_own_is_answered_500_and_logged_once(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr(Lane, where, fail)
    reader, writer = await connect(house.proxy.url)
    writer.write(house.requests.whole())
    assert (await rest(reader)).startswith(b"HTTP/1.1 500 ")
    writer.close()
    assert [each.message for each in caplog.records if each.name.startswith("mcpproxy")] == ["POST /mcp failed"]


@pytest.mark.anyio
async def test_the_unix_socket_is_the_operators_under_any_name(house: House, seen: Seen, tmp_path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    listening.listen()
    app, stopping = house.proxy.app, asyncio.Event()
    check = HostCheck(app, lambda: app.config)
    serving = asyncio.create_task(serve_http(check, [listening], lambda: 0, stopping))
    reader, writer = await asyncio.open_unix_connection(tmp_path / "socket")
    writer.write(house.requests.whole(without="X-API-Key", Host="evil.example"))
    await until(lambda: seen.taken == 1)
    writer.write(BYE)
    assert b"plain done" in await rest(reader)
    writer.close()
    stopping.set()
    await serving
