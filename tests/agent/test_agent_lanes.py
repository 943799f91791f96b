"""Both lanes, both eras: the same call gets the same answer, byte for byte, however it comes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.call_corpus import CALLS, ERAS, RAW_RESULTS, SHAPES
from tests.agent.wire_client import ACCEPT, WireClient, connected
from tests.calls.proxy import Proxy, echo, running

from mcpproxy.agent.lane import Arrived, Lane, Taken


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    async with running(tmp_path_factory.mktemp("lanes"), [echo()], tool_response_limit=500) as started:
        yield started


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Taken]:
    """The requests that the lane took."""
    taken: list[Taken] = []
    read = Lane.read

    def noted(self: Lane, arrived: Arrived) -> Taken | None:
        found = read(self, arrived)
        taken.extend([found] if found is not None else [])
        return found

    monkeypatch.setattr(Lane, "read", noted)
    return taken


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_one_corpus_of_calls_gets_the_same_answers_on_both_lanes(
    proxy: Proxy, era: str, taken: list[Taken]
) -> None:
    async with connected(proxy.mcp, era=era, lane=True) as short, connected(proxy.mcp, era=era, lane=False) as long:
        for tool, arguments in CALLS:
            taken.clear()
            quick = await short.call(tool, arguments)
            assert len(taken) == tool.startswith("call_tool_"), (tool, arguments)
            slow = await long.call(tool, arguments)
            assert len(taken) == tool.startswith("call_tool_")  # and no more by the long way
            assert quick.status == slow.status, (tool, arguments)
            if "error" in slow.decoded:
                assert quick.decoded["error"] == slow.decoded["error"], (tool, arguments)
            else:
                assert quick.result == slow.result, (tool, arguments)


@pytest.mark.anyio
@pytest.mark.parametrize("progress", [None, "token"])
@pytest.mark.parametrize("lane", [True, False])
@pytest.mark.parametrize("era", ERAS)
async def test_a_result_reaches_the_agent_byte_for_byte(
    proxy: Proxy, era: str, lane: bool, progress: str | None
) -> None:
    async with connected(proxy.mcp, era=era, lane=lane) as client:
        for raw in RAW_RESULTS:
            arguments = json.dumps({"name": "echo:raw", "args": {"result": raw}})
            answer = await client.call("call_tool_read", arguments, progress=progress)
            sent = raw.encode("utf-8", "surrogatepass")
            got = answer.result.decode().replace('{"resultType":"complete",', "{", 1).encode()
            assert got == sent, raw


@pytest.mark.anyio
@pytest.mark.parametrize("lane", [True, False])
@pytest.mark.parametrize("era", ERAS)
async def test_arguments_reach_the_upstream_byte_for_byte_on_one_line(proxy: Proxy, era: str, lane: bool) -> None:
    args = '{"a":1.0,"b":1e2,\n"c":12345678901234567890123,"d":0.10, "e":"\\u00e9","f":{"x":1,"x":2}}'
    async with connected(proxy.mcp, era=era, lane=lane) as client:
        for arguments in (
            f'{{"name":"echo:line","args":{args}}}',
            json.dumps({"name": "echo:line", "args_json": args}),
        ):
            answer = await client.call("call_tool_read", arguments)
            heard = answer.decoded["result"]["content"][0]["text"]
            assert f'"arguments":{args}'.replace("\n", " ") in heard


@pytest.mark.anyio
async def test_a_non_object_structured_content_is_left_out_for_an_older_client_only(proxy: Proxy) -> None:
    raw = '{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1.0],"isError":false}'
    arguments = json.dumps({"name": "echo:raw", "args": {"result": raw}})
    for lane in (True, False):
        async with connected(proxy.mcp, era="legacy", lane=lane) as client:
            answer = await client.call("call_tool_read", arguments)
            assert answer.result == b'{"content":[{"type":"text","text":"[1]"}],"isError":false}'
        async with connected(proxy.mcp, era="modern", lane=lane) as client:
            answer = await client.call("call_tool_read", arguments)
            assert b'"structuredContent":[1.0]' in answer.result


@pytest.mark.anyio
@pytest.mark.parametrize("lane", [True, False])
@pytest.mark.parametrize("era", ERAS)
async def test_progress_reaches_a_client_that_asked_for_it_under_its_own_token(
    proxy: Proxy, era: str, lane: bool
) -> None:
    async with connected(proxy.mcp, era=era, lane=lane) as client:
        arguments = '{"name":"echo:slow","args":{"steps":3,"pause":0.05}}'
        answer = await client.call("call_tool_read", arguments, progress="mine")
        reports = [json.loads(message)["params"] for message in answer.before if b"progress" in message]
        assert [report["progress"] for report in reports] == [1, 2, 3]
        assert {report["progressToken"] for report in reports} == {"mine"}
        assert answer.decoded["result"]["content"][0]["text"] == "done"
        silent = await client.call("call_tool_read", arguments)
        assert silent.before == []


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_long_text_is_cut_and_read_on_through_read_cache(proxy: Proxy, era: str) -> None:
    text = "\n".join(f"line {number}" for number in range(400))
    raw = json.dumps({"content": [{"type": "text", "text": text}], "structuredContent": {"kept": True}})
    async with connected(proxy.mcp, era=era, lane=True) as client, connected(proxy.mcp, era=era, lane=True) as other:
        answer = await client.call("call_tool_read", json.dumps({"name": "echo:raw", "args": {"result": raw}}))
        shown = answer.decoded["result"]["content"][0]["text"]
        assert answer.decoded["result"]["structuredContent"] == {"kept": True}
        head, _, note = shown.partition("\n\n[mcpproxy: cut at character ")
        assert text.startswith(head) and note
        pointer = json.loads(note[note.index("{") : note.index("}") + 1])
        read, offset = head, pointer["offset"]
        while offset is not None:
            page = await client.call("read_cache", json.dumps({"key": pointer["key"], "offset": offset}))
            piece = page.decoded["result"]["structuredContent"]
            read, offset = read[:offset] + piece["text"], piece["next_offset"]
        assert read == text
        if era == "legacy":  # the modern era has no sessions: there the caller alone decides
            stranger = await other.call("read_cache", json.dumps({"key": pointer["key"]}))
            assert stranger.decoded["result"]["isError"] is True


def _shape(body: str | bytes, client: WireClient) -> str | bytes:
    """Fill in what differs between the eras."""
    if isinstance(body, bytes):
        return body
    meta = json.loads(client.meta() or "{}")
    arguments = {"name": "echo:plain"}

    def params(**changes: Any) -> str:
        filled: dict[str, Any] = {"name": "call_tool_read", "arguments": arguments}
        if meta:
            filled["_meta"] = meta
        return json.dumps({**filled, **changes})

    if "ARGS(" in body:
        inner = body[body.index("ARGS(") + 5 : body.rindex(")")]
        deep = "[" * 2000 + "]" * 2000
        text = params(arguments="@@").replace('"@@"', deep if inner == "DEEP" else inner)
        return body[: body.index("ARGS(")] + text + body[body.rindex(")") + 1 :]
    if "META(" in body:
        inner = json.loads(body[body.index("META(") + 5 : body.rindex(")")])
        filled = {**meta, **inner} if isinstance(inner, dict) else inner
        return body[: body.index("META(")] + params(_meta=filled) + body[body.rindex(")") + 1 :]
    body = body.replace("PARAMS", params()).replace("EXTRA", params(surprise=1))
    return body.replace("TASK", params(task={"ttl": 1}))


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_every_request_shape_is_answered_as_the_sdk_alone_answers_it(
    proxy: Proxy, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Lane.read

    def never(self: Lane, arrived: Arrived) -> None:
        return None

    async with connected(proxy.mcp, era=era, lane=True) as client:
        for label, body, more in SHAPES:
            filled = _shape(body, client)
            named = {"Mcp-Method": "tools/call", "Mcp-Name": "call_tool_read"} if client.modern else {}
            headers = {**named, "Accept": ACCEPT, **more}
            monkeypatch.setattr(Lane, "read", read)
            with_lane = await client.post(filled, headers)
            again = await client.post(filled, headers)  # by now the lane may have learnt the envelope
            monkeypatch.setattr(Lane, "read", never)
            alone = await client.post(filled, headers)
            for answer in (with_lane, again):
                assert answer.status == alone.status, (label, answer, alone)
                assert _comparable(answer.message) == _comparable(alone.message), (label, answer, alone)


def _comparable(message: bytes) -> Any:
    try:
        return json.loads(message)
    except ValueError:
        return message


@pytest.mark.anyio
@pytest.mark.parametrize("lane", [True, False])
async def test_a_cancelled_notification_ends_the_call_it_names(tmp_path: Path, lane: bool) -> None:
    heard = tmp_path / "heard"
    async with (
        running(tmp_path / "home", [echo(heard=heard)]) as proxy,
        connected(proxy.mcp, era="legacy", lane=lane) as client,
    ):
        call = asyncio.create_task(
            client.call("call_tool_read", '{"name":"echo:slow","args":{"steps":100,"pause":0.1}}')
        )
        async with asyncio.timeout(10):
            while not heard.exists() or "call slow" not in heard.read_text():
                await asyncio.sleep(0.02)
        await client.post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
        async with asyncio.timeout(10):
            answer = await call
            assert answer.decoded["error"]["code"] == -32800
            while "cancelled" not in heard.read_text():
                await asyncio.sleep(0.05)
