"""The lane on stdin and stdout: what it answers is what the SDK answers, in both eras and over every kind of pipe."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.call_corpus import CALLS, ERAS, RAW_RESULTS
from tests.agent.pipe_agent import ENVELOPE, HANDSHAKE, READS, talking
from tests.calls.proxy import Proxy, echo, running

from mcpproxy.agent import stdio
from mcpproxy.agent.lane import Lane, Taken
from mcpproxy.agent.stdio import StdioFace

SLOW = '{"name":"echo:slow","args":{"steps":100,"pause":0.1}}'


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(scope="module")
async def proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    home = tmp_path_factory.mktemp("stdio")
    async with running(home, [echo(heard=home / "heard")], tool_response_limit=500, max_request_bytes=20_000) as found:
        yield found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Taken]:
    """The calls that the lane took."""
    taken: list[Taken] = []
    read = Lane.read_line

    def noted(self: Lane, line: bytes, accepted: Any) -> Taken | None:
        found = read(self, line, accepted)
        taken.extend([found] if found is not None else [])
        return found

    monkeypatch.setattr(Lane, "read_line", noted)
    return taken


def result_of(line: bytes) -> Any:
    """An answer without its id."""
    read = json.loads(line)
    return {key: value for key, value in read.items() if key != "id"}


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_one_corpus_of_calls_gets_the_same_answers_with_and_without_the_lane(
    proxy: Proxy, era: str, taken: list[Taken]
) -> None:
    async with talking(proxy) as short, talking(proxy, lane=False) as long:
        await short.greet(era)
        await long.greet(era)
        for tool, arguments in CALLS:
            taken.clear()
            quick = await short.called(tool, arguments)
            assert len(taken) == (tool.startswith("call_tool_")), (tool, arguments)
            slow = await long.called(tool, arguments)
            assert len(taken) == (tool.startswith("call_tool_"))
            assert result_of(quick) == result_of(slow), (tool, arguments)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["pipes", "sockets", "one socket"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_result_reaches_the_agent_byte_for_byte(proxy: Proxy, era: str, kind: str, taken: list[Taken]) -> None:
    async with talking(proxy, kind=kind) as agent:
        await agent.greet(era)
        for raw in RAW_RESULTS:
            arguments = json.dumps({"name": "echo:raw", "args": {"result": raw}})
            line = await agent.called("call_tool_read", arguments)
            got = line.decode().partition('"result":')[2].replace('{"resultType":"complete",', "{", 1)
            assert got == raw + "}\n", raw
    assert len(taken) == len(RAW_RESULTS)


@pytest.mark.anyio
@pytest.mark.parametrize("lane", [True, False])
@pytest.mark.parametrize("era", ERAS)
async def test_progress_comes_before_the_answer_under_the_agents_own_token(proxy: Proxy, era: str, lane: bool) -> None:
    async with talking(proxy, lane=lane) as agent:
        await agent.greet(era)
        agent.call("call_tool_read", '{"name":"echo:slow","args":{"steps":3,"pause":0.05}}', token="mine")
        lines = [json.loads(await agent.line())]
        while "method" in lines[-1]:  # of which one may say that there are other tools now
            lines.append(json.loads(await agent.line()))
        reports = [line["params"] for line in lines if line.get("method") == "notifications/progress"]
        assert [report["progress"] for report in reports] == [1, 2, 3]
        assert {report["progressToken"] for report in reports} == {"mine"}
        assert "result" in lines[-1]


@pytest.mark.anyio
@pytest.mark.parametrize("lane", [True, False])
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_is_given_up_gets_no_answer_and_ends_upstream(tmp_path: Path, era: str, lane: bool) -> None:
    heard = tmp_path / "heard"
    async with running(tmp_path / "home", [echo(heard=heard)]) as proxy, talking(proxy, lane=lane) as agent:
        await agent.greet(era)
        number = agent.call("call_tool_read", SLOW)
        async with asyncio.timeout(10):
            while "call slow" not in heard.read_text():
                await asyncio.sleep(0.02)
        agent.tell("notifications/cancelled", f'{{"requestId":"{number}"}}')  # some clients make a text of it
        async with asyncio.timeout(10):
            while "cancelled" not in heard.read_text():
                await asyncio.sleep(0.02)
        other = agent.call("call_tool_read", READS)
        assert json.loads(await agent.answer())["id"] == other


@pytest.mark.anyio
async def test_a_call_that_is_given_up_in_the_same_breath_is_not_made(proxy: Proxy, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    async with running(tmp_path / "home", [echo(heard=heard)]) as proxy, talking(proxy) as agent:
        await agent.greet("legacy")
        call = '{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"call_tool_read","arguments":%s}}\n'
        cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}\n'
        agent.write((call % SLOW + cancel).encode())
        other = agent.call("call_tool_read", READS)
        assert json.loads(await agent.answer())["id"] == other
        assert "call slow" not in heard.read_text()


@pytest.mark.anyio
@pytest.mark.parametrize("lane", [True, False])
@pytest.mark.parametrize("era", ERAS)
async def test_the_end_of_stdin_ends_what_is_under_way(proxy: Proxy, era: str, lane: bool) -> None:
    async with talking(proxy, lane=lane) as agent:
        await agent.greet(era)
        number = agent.call("call_tool_read", SLOW, request_id="7")
        await asyncio.sleep(0.2)
        agent.hang_up()
        line = json.loads(await agent.answer())
        assert line["id"] == number and line["error"] == {"code": -32000, "message": "Connection closed"}
        assert await agent.line() == b""


@pytest.mark.anyio
async def test_of_two_calls_with_one_id_none_is_forgotten_at_the_end(proxy: Proxy) -> None:
    async with talking(proxy) as agent:
        await agent.greet("legacy")
        agent.call("call_tool_read", SLOW, request_id=5)
        agent.call("call_tool_read", SLOW, request_id="5")
        await asyncio.sleep(0.2)
        agent.hang_up()
        assert {json.loads(await agent.answer())["id"] for _ in range(2)} == {5, "5"}
        assert await agent.line() == b""


@pytest.mark.anyio
async def test_an_agent_that_reads_no_more_is_not_served_any_longer(proxy: Proxy) -> None:
    async with talking(proxy) as agent:
        await agent.greet("legacy")
        agent.stop_reading()
        async with asyncio.timeout(20):
            while not agent.serving.done():
                with contextlib.suppress(OSError):
                    agent.call("call_tool_read", READS)
                await asyncio.sleep(0.05)


@pytest.mark.anyio
async def test_what_comes_after_the_stop_is_not_done(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    async with running(tmp_path / "home", [echo(heard=heard)]) as proxy, talking(proxy) as agent:
        await agent.greet("legacy")
        agent.call("call_tool_read", SLOW)
        await asyncio.sleep(0.2)
        agent.serving.cancel()
        async with asyncio.timeout(20):
            while not agent.face._in._closed:
                await asyncio.sleep(0)
        for _ in range(3):
            with contextlib.suppress(OSError):
                agent.call("call_tool_read", READS)
            await asyncio.sleep(0.05)
        assert heard.read_text().count("call reads") == 1  # the greeting's


@pytest.mark.anyio
async def test_past_the_bound_calls_are_the_sdks_and_nothing_has_to_wait(
    proxy: Proxy, taken: list[Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "_MOST_UNDER_WAY", 2)
    async with talking(proxy) as agent:
        await agent.greet("legacy")
        numbers = [agent.call("call_tool_read", SLOW) for _ in range(3)]
        ping = agent.send("ping", "{}")
        assert json.loads(await agent.answer())["id"] == ping
        assert [found.request.id for found in taken] == numbers[:2]
        for number in numbers:
            agent.tell("notifications/cancelled", f'{{"requestId":{number}}}')


@pytest.mark.anyio
async def test_a_cancellation_that_asks_for_an_answer_is_none(proxy: Proxy) -> None:
    async with talking(proxy) as agent:
        await agent.greet("legacy")
        number = agent.call("call_tool_read", '{"name":"echo:slow","args":{"steps":2,"pause":0.05}}')
        other = agent.send("notifications/cancelled", f'{{"requestId":{number}}}')
        assert {json.loads(await agent.answer())["id"] for _ in range(2)} == {number, other}


@pytest.mark.anyio
async def test_an_answer_to_something_else_teaches_nothing(proxy: Proxy, taken: list[Taken]) -> None:
    async with talking(proxy) as agent:
        agent.send("ping", "{}", 1)
        agent.call("call_tool_read", READS, request_id=1)
        agent.send("ping", "{}", 1)
        assert [("result" in json.loads(await agent.answer())) for _ in range(3)].count(True) == 2
        assert "error" in json.loads(await agent.called("call_tool_read", READS))
        assert not taken


@pytest.mark.anyio
async def test_an_envelope_that_takes_much_room_is_not_remembered(proxy: Proxy) -> None:
    async with talking(proxy) as agent:
        await agent.greet("legacy")
        meta = json.dumps({"k" * 10_000: 1})
        agent.send("tools/call", f'{{"name":"call_tool_read","arguments":{READS},"_meta":{meta}}}')
        assert b'"result"' in await agent.answer()
        assert list(agent.face._accepted) == [()]


@pytest.mark.anyio
async def test_a_flood_of_lines_that_say_nothing_is_answered_line_by_line(proxy: Proxy) -> None:
    async with talking(proxy) as agent:
        writing = asyncio.create_task(asyncio.to_thread(agent.write, b"x\n" * 5000))
        for _ in range(5000):
            assert b"-32700" in await agent.answer()
        await writing
        assert agent.face._errors == 0


@pytest.mark.anyio
async def test_the_lane_begins_where_the_sdk_has_taken_a_call_and_ends_with_a_new_handshake(
    proxy: Proxy, taken: list[Taken]
) -> None:
    async with talking(proxy) as agent:
        early = json.loads(await agent.called("call_tool_read", READS))
        assert "error" in early and not taken  # no handshake yet, and only the SDK may say so
        await agent.greet("legacy")
        assert not taken
        await agent.called("call_tool_read", READS)
        assert len(taken) == 1
        handshake = json.dumps({"jsonrpc": "2.0", "id": "again", "method": "initialize", "params": HANDSHAKE})
        call = '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"call_tool_read","arguments":%s}}'
        agent.write(f"{handshake}\n{call % READS}\n".encode())
        assert {json.loads(await agent.answer())["id"], json.loads(await agent.answer())["id"]} == {"again", 5}
        assert len(taken) == 1  # what stood behind the handshake was the SDK's, although it came with it


@pytest.mark.anyio
@pytest.mark.parametrize(
    "meta",
    ['{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}', '{"a/b":1}', '{"progressToken":1.5}', "[]", "7"],
)
async def test_an_envelope_that_the_sdk_has_not_taken_is_left_to_it(
    proxy: Proxy, taken: list[Taken], meta: str
) -> None:
    params = f'{{"name":"call_tool_read","arguments":{READS},"_meta":{meta}}}'
    async with talking(proxy) as agent, talking(proxy, lane=False) as other:
        for one in (agent, other):
            await one.greet("legacy")
            one.send("tools/call", params)
        assert result_of(await agent.answer()) == result_of(await other.answer())
        assert not taken


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_calls_of_a_traced_agent_take_the_lane_although_each_names_another_span(
    proxy: Proxy, taken: list[Taken], era: str
) -> None:
    async with talking(proxy) as agent:
        await agent.greet(era)
        for span in range(3):
            parent = f"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333{span}-01"
            trace = {"traceparent": parent, "tracestate": "a=1"}
            meta = json.dumps({**(ENVELOPE if era == "modern" else {}), **trace})
            agent.send("tools/call", f'{{"name":"call_tool_read","arguments":{READS},"_meta":{meta}}}')
            assert b'"result"' in await agent.answer()
        assert len(taken) == 3 and len(agent.face._accepted) == 1


@pytest.mark.anyio
async def test_the_record_of_a_call_by_the_lane_names_its_agent(proxy: Proxy, taken: list[Taken]) -> None:
    async with talking(proxy) as agent:
        await agent.greet("legacy")
        await agent.called("call_tool_read", READS)
    (found,) = taken
    assert (found.caller.key, found.caller.client_name, found.caller.modern) == ("stdio", "pipe-client", False)


@pytest.mark.anyio
@pytest.mark.parametrize("learned", [True, False])
async def test_lines_that_are_no_message_are_answered_and_cost_nothing_else(proxy: Proxy, learned: bool) -> None:
    async with talking(proxy) as agent:
        if learned:
            await agent.greet("legacy")
        agent.write(b"nonsense\n\n  \n")
        assert json.loads(await agent.answer())["error"]["code"] == -32700
        agent.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"y" * 30_000 + b'"}\n')
        assert "max_request_bytes" in json.loads(await agent.answer())["error"]["message"]
        if not learned:
            await agent.greet("legacy")
        assert b'"result"' in await agent.called("call_tool_read", READS)


@pytest.mark.anyio
async def test_many_calls_at_once_are_all_answered_however_slowly_the_agent_reads(proxy: Proxy) -> None:
    async with talking(proxy) as agent:
        await agent.greet("legacy")
        raw = json.dumps({"content": [{"type": "text", "text": "x" * 400}]})
        arguments = json.dumps({"name": "echo:raw", "args": {"result": raw}})
        numbers = await asyncio.to_thread(
            lambda: {agent.call("call_tool_read", arguments) for _ in range(3000)}  # more than both pipes hold
        )
        answered = {json.loads(await agent.answer())["id"] for _ in range(3000)}
        assert answered == numbers


@pytest.mark.anyio
async def test_files_do_for_stdin_and_stdout_as_well(proxy: Proxy, tmp_path: Path) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    asked.write_text(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}) + "\n"
        '{"jsonrpc":"2.0","method":"notifications/initialized"}\nnonsense\n'
        '{"jsonrpc":"2.0","id":2,"method":"ping"}'  # without an end, as some write a last line
    )
    agent = proxy.app.agent
    face = StdioFace(agent._server, agent._lane, agent._placeholders, lambda: 10_000)
    wire_in, wire_out = os.open(asked, os.O_RDONLY), os.open(answered, os.O_WRONLY | os.O_CREAT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stdio, "_claim", lambda: (wire_in, wire_out))
        async with asyncio.timeout(20):
            await face.serve()
    lines = [json.loads(line) for line in answered.read_text().splitlines()]
    assert {line["id"] for line in lines} == {1, 2, None}
