"""Both lanes, both eras: the same call gets the same answer, byte for byte, however it comes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.wire_client import ACCEPT, WireClient, connected
from tests.calls.proxy import Proxy, echo, running

from mcpproxy.agent.lane import Arrived, Lane, Taken

ERAS = ("legacy", "modern")

RAW_RESULTS = [
    '{"content":[],"structuredContent":{"n":1.0}}',
    '{"content":[],"structuredContent":{"n":1e2,"big":12345678901234567890123,"d":0.10,"e":1E5}}',
    '{"content":[],"structuredContent":{"n":1e400,"m":-0.0,"z":-0}}',
    '{"content":[],"structuredContent":{"a":1,"a":2}}',
    '{ "content" : [ ] ,  "structuredContent" : { "odd" :  [ 1 ,2 ] } }',
    '{"content":[{"type":"text","text":"\\u00e9\\/\\ud83d\\ude00 caf\\u00e9 \\u2028"}]}',
    '{"content":[{"type":"text","text":"é 😀 \\n"}],"isError":false}',
    '{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}',
    '{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"x"}},{"type":"resource_link","uri":"file:///b","name":"b"}]}',
    '{"content":[{"type":"text","text":"bad"}],"isError":true,"_meta":{"x/y":[1.50]}}',
    '{"content":[],"unknownKey":{"kept":1.00},"_meta":{"a.b/c":{"n":1.0}}}',
    '{"content":[{"type":"text","text":"half an emoji \\ud83d"}]}',
]

CALLS = [
    ("call_tool_read", '{"name":"echo:plain"}'),
    ("call_tool_read", '{"name":"echo:reads","args":{"a":1.0,"b":[1e2]}}'),
    ("call_tool_write", '{"name":"echo:plain","args_json":"{\\"x\\": 1.50}"}'),
    ("call_tool_destructive", '{"name":"echo:deletes"}'),
    ("call_tool_read", '{"name":"echo:deletes"}'),
    ("call_tool_write", '{"name":"echo:both"}'),
    ("call_tool_read", '{"name":"echo:modifies"}'),
    ("call_tool_read", '{"name":"echo:gentle"}'),
    ("call_tool_read", '{"name":"echo:nothing"}'),
    ("call_tool_read", '{"name":"nowhere:plain"}'),
    ("call_tool_read", '{"name":"plain"}'),
    ("call_tool_read", '{"name":""}'),
    ("call_tool_read", '{"name":7}'),
    ("call_tool_read", "{}"),
    ("call_tool_read", '{"name":"echo:plain","unknown":1}'),
    ("call_tool_read", '{"name":"echo:plain","args":{},"args_json":"{}"}'),
    ("call_tool_read", '{"name":"echo:plain","args_json":"{broken"}'),
    ("call_tool_read", '{"name":"echo:plain","args_json":"[1]"}'),
    ("call_tool_read", '{"name":"echo:plain","args_json":""}'),
    ("call_tool_read", '{"name":"echo:plain","args_json":7}'),
    ("call_tool_read", '{"name":"echo:plain","args":null}'),
    ("call_tool_read", '{"name":"echo:strict_input","args":{"city":"Rome","days":9}}'),
    ("call_tool_read", '{"name":"echo:strict_input","args":{"town":"Rome"}}'),
    ("call_tool_read", '{"name":"echo:plain","intent":{"operation_type":"write"}}'),
    ("call_tool_read", '{"name":"echo:plain","intent":{"operation_type":"nonsense"}}'),
    ("call_tool_read", '{"name":"echo:plain","intent":{"surprise":1}}'),
    ("call_tool_read", '{"name":"echo:plain","intent":"read"}'),
    ("call_tool_write", '{"name":"echo:plain","intent_data_sensitivity":"secret"}'),
    ("call_tool_write", '{"name":"echo:plain","intent_reason":"' + "x" * 1001 + '"}'),
    ("call_tool_write", '{"name":"echo:plain","intent_reason":"a","intent":{"reason":"b"}}'),
    ("call_tool_read", '{"name":"echo:rpc_error"}'),
    ("call_tool_read", '{"name":"echo:raw","args":{"result":"[1]"}}'),
    ("call_tool_read", '{"name":"echo:raw","args":{"result":"{\\"resultType\\":\\"input_required\\"}"}}'),
    ("describe_tool", '{"name":"echo:typed"}'),
    ("describe_tool", '{"names":["echo:typed","echo:none"]}'),
    ("describe_tool", "{}"),
    ("read_cache", '{"key":"nothing"}'),
    ("call_tool", '{"name":"echo:plain"}'),
    ("nonsense", "{}"),
]


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


CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":PARAMS}'
HEAD = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'

SHAPES: list[tuple[str, str | bytes, dict[str, str]]] = [
    ("plain call", CALL, {}),
    ("string id", '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":PARAMS}', {}),
    ("null id", '{"jsonrpc":"2.0","id":null,"method":"tools/call","params":PARAMS}', {}),
    ("float id", '{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":PARAMS}', {}),
    ("bool id", '{"jsonrpc":"2.0","id":true,"method":"tools/call","params":PARAMS}', {}),
    ("object id", '{"jsonrpc":"2.0","id":{},"method":"tools/call","params":PARAMS}', {}),
    ("no id", '{"jsonrpc":"2.0","method":"tools/call","params":PARAMS}', {}),
    ("huge id", '{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"tools/call","params":PARAMS}', {}),
    ("no version", '{"id":1,"method":"tools/call","params":PARAMS}', {}),
    ("wrong version", '{"jsonrpc":"1.0","id":1,"method":"tools/call","params":PARAMS}', {}),
    ("extra member", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":PARAMS,"extra":1}', {}),
    ("repeated member", '{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":PARAMS}', {}),
    ("no params", '{"jsonrpc":"2.0","id":1,"method":"tools/call"}', {}),
    ("null params", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}', {}),
    ("array params", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', {}),
    ("string params", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}', {}),
    ("batch", '[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":PARAMS}]', {}),
    ("empty batch", "[]", {}),
    ("a response", '{"jsonrpc":"2.0","id":1,"result":{}}', {}),
    ("broken", '{"jsonrpc":"2.0","id":1', {}),
    ("empty", "", {}),
    ("scalar", "7", {}),
    ("trailing garbage", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":PARAMS} x', {}),
    ("byte order mark", '\ufeff{"jsonrpc":"2.0","id":1,"method":"tools/call","params":PARAMS}', {}),
    ("invalid utf-8", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read\xff"}}', {}),
    ("whitespace", ' \n{"jsonrpc" : "2.0" , "id" : 1 , "method" : "tools/call" , "params" : PARAMS } \n', {}),
    ("unknown method", '{"jsonrpc":"2.0","id":1,"method":"tools/nothing","params":PARAMS}', {}),
    ("ping", '{"jsonrpc":"2.0","id":1,"method":"ping"}', {}),
    ("arguments null", HEAD + "ARGS(null)}", {}),
    ("arguments array", HEAD + "ARGS([])}", {}),
    ("arguments string", HEAD + 'ARGS("x")}', {}),
    ("arguments number", HEAD + "ARGS(1)}", {}),
    ("arguments deep", HEAD + "ARGS(DEEP)}", {}),
    ("name number", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}', {}),
    ("name missing", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}', {}),
    ("content type missing", CALL, {"Content-Type": ""}),
    ("text/plain", CALL, {"Content-Type": "text/plain"}),
    (
        "charset",
        CALL,
        {"Content-Type": "application/json; charset=utf-8"},
    ),
    (
        "accept json only",
        CALL,
        {"Accept": "application/json"},
    ),
    ("accept html", CALL, {"Accept": "text/html"}),
    ("accept anything", CALL, {"Accept": "*/*"}),
    (
        "accept with weights",
        CALL,
        {"Accept": "application/json;q=0.9, text/event-stream;q=0.1"},
    ),
    (
        "accept look-alike",
        CALL,
        {"Accept": "application/jsonx, text/event-streamy"},
    ),
    (
        "unknown session",
        CALL,
        {"Mcp-Session-Id": "no-such"},
    ),
    (
        "unknown protocol version",
        CALL,
        {"MCP-Protocol-Version": "2031-01-01"},
    ),
    (
        "old protocol version",
        CALL,
        {"MCP-Protocol-Version": "2025-03-26"},
    ),
    (
        "oldest protocol version",
        CALL,
        {"MCP-Protocol-Version": "2024-11-05"},
    ),
    (
        "wrong method header",
        CALL,
        {"Mcp-Method": "tools/list"},
    ),
    (
        "wrong name header",
        CALL,
        {"Mcp-Name": "call_tool_write"},
    ),
    ("param header", CALL, {"Mcp-Param-City": "Rome"}),
    (
        "base64 name header",
        CALL,
        {"Mcp-Name": "=?base64?Y2FsbF90b29sX3JlYWQ=?="},
    ),
    ("token number", HEAD + 'META({"progressToken":5})}', {}),
    ("token float", HEAD + 'META({"progressToken":5.5})}', {}),
    ("token null", HEAD + 'META({"progressToken":null})}', {}),
    ("token object", HEAD + 'META({"progressToken":{}})}', {}),
    ("token bool", HEAD + 'META({"progressToken":true})}', {}),
    ("meta null", HEAD + "META(null)}", {}),
    ("meta array", HEAD + "META([])}", {}),
    (
        "meta more",
        HEAD + 'META({"a.b/c":[1],"progressToken":"x"})}',
        {},
    ),
    (
        "meta other version",
        HEAD + 'META({"io.modelcontextprotocol/protocolVersion":"2025-11-25"})}',
        {},
    ),
    (
        "meta capabilities wrong",
        HEAD + 'META({"io.modelcontextprotocol/clientCapabilities":7})}',
        {},
    ),
    (
        "meta client wrong",
        HEAD + 'META({"io.modelcontextprotocol/clientInfo":"x"})}',
        {},
    ),
    ("unknown param", HEAD + "EXTRA}", {}),
    ("task param", HEAD + "TASK}", {}),
]


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
