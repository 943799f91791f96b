"""`/tools`: the same tools, the same search and the same way of a call that agents have."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.api.serving import Rest, serving
from tests.calls.proxy import KEY, echo


def call(rest: Rest, name: str, variant: str = "read", **more: Any) -> Any:
    return rest.ask("POST", "tools/call", json={"name": name, "variant": variant, **more})


def records_of(rest: Rest, request_id: str) -> list[tuple[str, str]]:
    found = rest.get(f"activity?request_id={request_id}")["activities"]
    return sorted((record["type"], record["status"]) for record in found)


def test_the_list_has_every_tool_with_its_schema_and_how_to_call_it(rest: Rest) -> None:
    listed = rest.get("tools")
    assert listed["total"] == len(listed["tools"])
    deletes = next(tool for tool in listed["tools"] if tool["name"] == "echo:deletes")
    assert deletes["call_with"] == "call_tool_destructive"
    assert deletes["annotations"] == {"destructiveHint": True}
    assert deletes["inputSchema"] == {"type": "object"}
    only = rest.get("tools?server=other")
    assert {tool["server"] for tool in only["tools"]} == {"other"}
    assert only["total"] * 2 == listed["total"]
    assert rest.get("tools?server=nobody") == {"tools": [], "total": 0}


def test_the_search_is_that_of_retrieve_tools_and_on_record(rest: Rest) -> None:
    answer = rest.ask("GET", "tools/search?q=takes a city&limit=1", headers={"X-Request-Id": "search-1"}).json()
    found = answer["data"]
    assert found["tools"][0]["name"].endswith(":strict_input")
    assert len(found["tools"]) == 1
    assert 0 < found["tools"][0]["score"] <= 1
    assert found["query"] == "takes a city"
    assert "call_tool_read" in found["usage_instructions"]
    assert records_of(rest, "search-1") == [("internal_tool_call", "success")]
    assert rest.get("tools/search?q=xyzzyqwrt")["tools"] == []


RAW = '{"content":[],"structuredContent":{"n":1e400,"d":0.10,"big":1234567890123456789,"a":1,"a":2},"_meta":{"x":1.50}}'


def test_a_result_passes_byte_for_byte(rest: Rest) -> None:
    answer = call(rest, "echo:raw", arguments={"result": RAW})
    assert answer.status_code == 200
    assert RAW[1:-1] in answer.text


def test_arguments_pass_byte_for_byte(rest: Rest) -> None:
    arguments = '{"n": 1E5, "d": 0.10, "big": 12345678901234567890123, "twice": 1, "twice": 2}'
    body = f'{{"name": "echo:line", "variant": "read", "arguments": {arguments}}}'
    answer = rest.ask("POST", "tools/call", content=body, headers={"Content-Type": "application/json"})
    assert arguments in answer.json()["data"]["content"][0]["text"]


def test_an_error_of_the_tool_itself_is_a_result(rest: Rest) -> None:
    answer = call(rest, "echo:raw", arguments={"result": '{"content":[{"type":"text","text":"no"}],"isError":true}'})
    assert answer.status_code == 200
    assert answer.json()["data"]["isError"] is True


def test_long_text_is_whole_since_there_is_no_context_to_spare(rest: Rest) -> None:
    text = "word " * 20_000
    answer = call(rest, "echo:raw", arguments={"result": json.dumps({"content": [{"type": "text", "text": text}]})})
    assert answer.json()["data"]["content"][0]["text"] == text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "echo:deletes", "variant": "read"}, 403, "SERVER_MISMATCH"),
        ({"name": "echo:modifies", "variant": "read"}, 403, "SERVER_MISMATCH"),
        ({"name": "echo:reads", "variant": "read", "intent": {"operation_type": "write"}}, 403, "INTENT_MISMATCH"),
        ({"name": "echo:reads", "variant": "read", "intent": {"data_sensitivity": "x"}}, 403, "INVALID_SENSITIVITY"),
        ({"name": "echo:reads", "variant": "read", "intent": {"reason": "x" * 1001}}, 403, "REASON_TOO_LONG"),
        ({"name": "echo:reads", "variant": "read", "intent": {"why": "x"}}, 403, "INTENT_CONFLICT"),
        ({"name": "nobody:reads", "variant": "read"}, 404, "UNKNOWN_SERVER"),
        ({"name": "echo:nothing", "variant": "read"}, 404, "UNKNOWN_TOOL"),
        ({"name": "reads", "variant": "read"}, 422, "INVALID_ARGUMENTS"),
        ({"name": "echo:strict_input", "variant": "read", "arguments": {}}, 422, "INVALID_ARGUMENTS"),
        ({"name": "echo:reads", "variant": "read", "arguments": [1]}, 422, "INVALID_ARGUMENTS"),
        ({"name": "echo:rpc_error", "variant": "write"}, 502, "UPSTREAM_INVALID"),
        ({"name": "call_tool", "variant": "read"}, 404, "UNKNOWN_TOOL"),
    ],
)
def test_a_refusal_has_its_status_and_the_code_that_agents_get(
    rest: Rest, body: dict[str, Any], status: int, code: str
) -> None:
    assert rest.error("POST", "tools/call", status, json=body)["code"] == code


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"name": "echo:reads"}, "variant", "read, write, destructive"),
        ({"name": "echo:reads", "variant": "delete"}, "variant", "read, write, destructive"),
        ({"name": 5, "variant": "read"}, "name", "Expected `str`"),
        ({"name": "echo:reads", "variant": "read", "args": {}}, "args", "arguments"),
    ],
)
def test_a_body_out_of_order_names_the_field(rest: Rest, body: dict[str, Any], field: str, said: str) -> None:
    error = rest.error("POST", "tools/call", 422, json=body)
    assert error["details"]["fields"][0]["field"] == field
    assert said in error["message"]


def test_a_blocked_call_is_on_record_like_an_agents(rest: Rest) -> None:
    body = {"name": "echo:deletes", "variant": "read"}
    rest.error("POST", "tools/call", 403, json=body, headers={"X-Request-Id": "blocked-1"})
    assert records_of(rest, "blocked-1") == [("policy_decision", "blocked"), ("tool_call", "blocked")]


def test_a_call_by_the_command_line_says_so(rest: Rest) -> None:
    headers = {"X-Request-Id": "cli-1", "X-Mcpproxy-Client": "cli", "User-Agent": "mcpproxy-cli/1"}
    rest.post("tools/call", {"name": "echo:reads", "variant": "read"}, headers=headers)
    record = rest.get("activity?request_id=cli-1")["activities"][0]
    assert (record["source"], record["client_name"]) == ("cli", "mcpproxy-cli/1")


def test_a_client_that_leaves_ends_its_call(rest: Rest) -> None:
    where = urlsplit(rest.url)
    body = b'{"name":"echo:slow_write","variant":"write","arguments":{"pause":30}}'
    head = (
        f"POST /api/v1/tools/call HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {KEY}\r\nX-Request-Id: left-1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
        connection.sendall(head.encode() + body)
        wait_for(lambda: rest.proxy.app.pipeline.in_flight == 1)
    wait_for(lambda: records_of(rest, "left-1") == [("tool_call", "interrupted")])


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    home = tmp_path_factory.mktemp("strict") / "data"
    absent = {"name": "absent", "command": "/nonexistent/program"}
    servers = [echo(), echo("off", enabled=False), echo("kept", quarantined=True), absent]
    with serving(home, servers, output_validation={"mode": "strict"}, call_tool_timeout="300ms") as found:
        yield found


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "echo:typed", "arguments": {"result": '{"structuredContent":{"count":-1}}'}}, 502, "OUTPUT_INVALID"),
        ({"name": "echo:slow", "arguments": {"pause": 20}}, 504, "TIMEOUT"),
        ({"name": "absent:x"}, 503, "UPSTREAM_UNAVAILABLE"),
        ({"name": "off:x"}, 503, "UPSTREAM_UNAVAILABLE"),
        ({"name": "kept:x"}, 403, "NOT_APPROVED"),
        ({"name": "echo:raw", "arguments": {"result": "[]"}}, 502, "UPSTREAM_INVALID"),
    ],
)
def test_what_the_server_does_wrong_is_told_from_what_the_caller_does(
    strict: Rest, body: dict[str, Any], status: int, code: str
) -> None:
    assert strict.error("POST", "tools/call", status, json={"variant": "read", **body})["code"] == code


def test_hung_calls_leave_the_rest_answering(rest: Rest) -> None:
    async def hang() -> None:
        body = {"name": "echo:slow", "variant": "read", "arguments": {"pause": 60}}
        headers = {"X-API-Key": KEY}
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as client:
            url = f"{rest.url}/api/v1"
            calls = [asyncio.create_task(client.post(f"{url}/tools/call", json=body)) for _ in range(300)]
            while rest.proxy.app.pipeline.in_flight < 300:
                await asyncio.sleep(0.05)
            for path in ("status", "activity", "servers", "activity/summary", "config"):
                async with asyncio.timeout(20), client.get(f"{url}/{path}") as answer:
                    assert answer.status == 200
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)

    asyncio.run(hang())
    wait_for(lambda: rest.proxy.app.pipeline.in_flight == 0)
