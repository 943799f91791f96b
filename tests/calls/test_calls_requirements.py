"""The requirements of the seeds, shown end to end: a real agent, a real upstream, and what is on record afterwards."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.wire_client import WireClient, connected
from tests.calls.proxy import Proxy, echo, running

from mcpproxy.activity.filters import parse_filter
from mcpproxy.activity.query import list_records
from mcpproxy.activity.record import Stored, decoded

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    async with running(tmp_path_factory.mktemp("calls"), [echo()]) as started:
        yield started


@pytest.fixture
async def agent(proxy: Proxy) -> AsyncIterator[WireClient]:
    async with connected(proxy.mcp, era="legacy", lane=True) as client:
        yield client


def on_record(proxy: Proxy, **given: str) -> list[Stored]:
    """The records that a filter finds, oldest first."""
    return list(reversed(list_records(proxy.app.storage, parse_filter(given)).activities))


async def call(client: WireClient, kind: str, request_id: str, **arguments: Any) -> dict[str, Any]:
    """Call a variant under a request id of our own; returns the decoded result."""
    client.headers["X-Request-Id"] = request_id
    answer = await client.call(f"call_tool_{kind}", json.dumps(arguments))
    result: dict[str, Any] = answer.decoded["result"]
    return result


def code(result: dict[str, Any]) -> str:
    assert result["isError"] is True
    error = result["structuredContent"]["error"]
    assert error["message"] == result["content"][0]["text"]
    found: str = error["code"]
    return found


async def test_fr_001_to_003_each_variant_calls_a_tool(agent: WireClient) -> None:
    for kind in ("read", "write", "destructive"):
        result = await call(agent, kind, f"fr-001-{kind}", name="echo:plain")
        assert result == {"content": [{"type": "text", "text": "plain done"}]}


async def test_fr_004_the_removed_call_tool_answers_with_the_way_on(agent: WireClient) -> None:
    answer = await agent.call("call_tool", '{"name":"echo:plain"}')
    assert answer.decoded["error"]["message"] == (
        "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive. "
        "See retrieve_tools for annotations and recommendations."
    )


async def test_fr_005_args_and_args_json_are_two_spellings_of_the_same(agent: WireClient) -> None:
    by_object = await call(agent, "read", "fr-005-a", name="echo:line", args={"a": 1})
    by_text = await call(agent, "read", "fr-005-b", name="echo:line", args_json='{"a":1}')
    assert '"arguments":{"a":1}' in by_text["content"][0]["text"]
    assert '"arguments":{"a": 1}' in by_object["content"][0]["text"]


@pytest.mark.parametrize(
    ("kind", "tool", "expected"),
    [
        ("read", "reads", None),
        ("read", "deletes", "SERVER_MISMATCH"),
        ("read", "plain", None),
        ("read", "both", "SERVER_MISMATCH"),
        ("read", "modifies", "SERVER_MISMATCH"),
        ("read", "gentle", None),
        ("write", "reads", None),
        ("write", "deletes", "SERVER_MISMATCH"),
        ("write", "plain", None),
        ("write", "both", "SERVER_MISMATCH"),
        ("write", "modifies", None),
        ("destructive", "reads", None),
        ("destructive", "deletes", None),
        ("destructive", "plain", None),
        ("destructive", "both", None),
        ("destructive", "modifies", None),
    ],
)
async def test_sc_004_the_annotation_matrix_holds_for_a_real_server(
    agent: WireClient, kind: str, tool: str, expected: str | None
) -> None:
    result = await call(agent, kind, "sc-004", name=f"echo:{tool}")
    assert (code(result) if result.get("isError") else None) == expected


async def test_sc_003_every_intent_mismatch_is_rejected(agent: WireClient) -> None:
    for kind in ("read", "write", "destructive"):
        for declared in {"read", "write", "destructive"} - {kind}:
            result = await call(agent, kind, "sc-003", name="echo:plain", intent={"operation_type": declared})
            assert code(result) == "INTENT_MISMATCH"
            assert result["content"][0]["text"] == (
                f"Intent mismatch: tool is call_tool_{kind} but intent declares {declared}"
            )


async def test_sc_002_with_two_keys_every_call_needs_a_matching_operation_type(tmp_path: Path) -> None:
    settings = {"intent_declaration": {"require_operation_type": True}}
    async with (
        running(tmp_path, [echo()], **settings) as proxy,
        connected(proxy.mcp, era="modern", lane=True) as agent,
    ):
        assert code(await call(agent, "read", "k1", name="echo:plain")) == "MISSING_INTENT"
        assert code(await call(agent, "read", "k2", name="echo:plain", intent_reason="x")) == "MISSING_INTENT"
        assert code(await call(agent, "read", "k3", name="echo:plain", intent={})) == "MISSING_OPERATION_TYPE"
        allowed = await call(agent, "read", "k4", name="echo:plain", intent={"operation_type": "read"})
        assert "isError" not in allowed
        tools = {tool["name"]: tool for tool in proxy.app.agent.list_tools(_anybody())}
        assert "intent" in tools["call_tool_read"]["inputSchema"]["required"]
        assert "Requires intent.operation_type='read'." in tools["call_tool_read"]["description"]


def _anybody() -> Any:
    from mcpproxy.calls.model import Caller

    return Caller(source="mcp", key="test")


async def test_fr_031_and_032_intent_and_variant_are_on_record(proxy: Proxy, agent: WireClient) -> None:
    await call(
        agent,
        "write",
        "fr-031",
        name="echo:plain",
        intent={"operation_type": "write", "data_sensitivity": "private", "reason": "Creating user record"},
    )
    (record,) = on_record(proxy, request_id="fr-031")
    metadata = decoded(record.metadata)
    assert metadata["intent"] == {
        "operation_type": "write",
        "data_sensitivity": "private",
        "reason": "Creating user record",
    }
    assert metadata["tool_variant"] == "call_tool_write"
    assert (record.type, record.status, record.source) == ("tool_call", "success", "mcp")
    assert (record.server_name, record.tool_name, record.client_name) == ("echo", "plain", "wire-client")
    assert record.session_id == agent.headers["Mcp-Session-Id"]


async def test_fr_033_and_sc_008_records_are_found_by_operation_type(proxy: Proxy, agent: WireClient) -> None:
    for kind in ("read", "write", "destructive"):
        await call(agent, kind, f"fr-033-{kind}", name="echo:plain")
        found = {record.request_id for record in on_record(proxy, intent_type=kind)}
        assert f"fr-033-{kind}" in found
        assert not {f"fr-033-{other}" for other in ("read", "write", "destructive") if other != kind} & found


@pytest.mark.parametrize(
    ("kind", "arguments", "status", "decisions"),
    [
        ("read", {"name": "echo:plain"}, "success", []),
        ("read", {"name": "echo:deletes"}, "blocked", ["blocked"]),
        ("read", {"name": "echo:plain", "intent": {"operation_type": "write"}}, "blocked", ["blocked"]),
        ("read", {"name": "echo:plain", "intent": {"surprise": 1}}, "blocked", ["blocked"]),
        ("write", {"name": "echo:reads"}, "success", ["warning"]),
        ("read", {"name": "echo:none"}, "rejected", []),
        ("read", {"name": "none:none"}, "rejected", []),
        ("read", {"name": "echo:plain", "args_json": "{"}, "rejected", []),
        ("read", {"name": "echo:strict_input", "args": {}}, "rejected", []),
        ("read", {"name": "echo:rpc_error"}, "error", []),
        ("read", {"name": "echo:raw", "args": {"result": '{"content":[],"isError":true}'}}, "error", []),
        ("read", {"name": "echo:raw", "args": {"result": "7"}}, "error", []),
        (
            "read",
            {"name": "echo:typed", "args": {"result": '{"content":[],"structuredContent":{"count":-1}}'}},
            "success",
            ["warning"],
        ),
    ],
)
async def test_every_call_has_one_tool_call_record_and_one_decision_where_somebody_decided(
    proxy: Proxy, agent: WireClient, kind: str, arguments: dict[str, Any], status: str, decisions: list[str]
) -> None:
    request_id = f"one-{abs(hash(json.dumps([kind, arguments])))}"
    await call(agent, kind, request_id, **arguments)
    records = on_record(proxy, request_id=request_id)
    assert [record.status for record in records if record.type == "tool_call"] == [status]
    decided = [record for record in records if record.type == "policy_decision"]
    assert [record.status for record in decided] == decisions
    assert len(records) == 1 + len(decisions)
    for record in records:
        metadata = decoded(record.metadata)
        assert metadata["intent"]["operation_type"] in ("read", "write", "destructive")
        assert metadata["tool_variant"] == f"call_tool_{kind}"
    if decisions == ["warning"]:
        assert decoded(records[0].metadata)["warnings"]


async def test_fr_042_lenient_mode_allows_with_a_warning_on_the_record(tmp_path: Path) -> None:
    settings = {"intent_declaration": {"strict_server_validation": False}}
    async with (
        running(tmp_path, [echo()], **settings) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        result = await call(agent, "read", "fr-042", name="echo:deletes")
        assert "isError" not in result
        records = on_record(proxy, request_id="fr-042")
        assert {(record.type, record.status) for record in records} == {
            ("tool_call", "success"),
            ("policy_decision", "warning"),
        }
        assert "marked destructive" in decoded(records[0].metadata)["warnings"][0]


async def test_fr_041_an_empty_block_weakens_nothing_and_a_reload_takes_effect(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [echo()], intent_declaration={}) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        assert code(await call(agent, "read", "a", name="echo:deletes")) == "SERVER_MISMATCH"
        proxy.rewrite(intent_declaration={"strict_server_validation": False})
        async with asyncio.timeout(10):
            while (await call(agent, "read", "b", name="echo:deletes")).get("isError"):
                await asyncio.sleep(0.1)


async def test_a_smaller_limit_on_results_counts_for_a_server_that_is_connected(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [echo()]) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):

        async def is_too_large(length: int) -> bool:
            told = json.dumps({"content": [{"type": "text", "text": "x" * length}]})
            result = await call(agent, "read", "limit", name="echo:raw", args={"result": told})
            return "isError" in result and code(result) == "RESULT_TOO_LARGE"

        assert not await is_too_large(5000)
        proxy.rewrite(max_result_bytes=4000)
        async with asyncio.timeout(10):
            while not await is_too_large(5000):
                await asyncio.sleep(0.1)
        assert not await is_too_large(3000)


async def test_a_strict_block_lets_nothing_of_the_payload_through_and_the_record_says_why(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [echo()], output_validation={"mode": "strict"}) as proxy,
        connected(proxy.mcp, era="modern", lane=True) as agent,
    ):
        payload = {
            "content": [{"type": "text", "text": "CANARY-text"}],
            "structuredContent": {"count": "CANARY-value", "CANARY-key": 1},
            "_meta": {"x": "CANARY-meta"},
        }
        agent.headers["X-Request-Id"] = "strict"
        answer = await agent.call(
            "call_tool_read", json.dumps({"name": "echo:typed", "args": {"result": json.dumps(payload)}})
        )
        assert b"CANARY" not in answer.message
        result = answer.decoded["result"]
        assert code(result) == "OUTPUT_INVALID"
        assert result["content"][0]["text"].startswith("Output validation failed for 'echo:typed': $.count: expected")
        records = {record.type: record for record in on_record(proxy, request_id="strict")}
        assert records["tool_call"].status == records["policy_decision"].status == "blocked"
        found = decoded(records["policy_decision"].metadata)["output_validation"]
        assert found["mode"] == "strict"
        assert "CANARY-value" in found["violation"]


async def test_internal_tools_are_recorded_as_such_and_never_as_tool_calls(proxy: Proxy, agent: WireClient) -> None:
    agent.headers["X-Request-Id"] = "internal"
    await agent.call("describe_tool", '{"name":"echo:plain"}')
    await agent.call("read_cache", '{"key":"none"}')
    await agent.call("retrieve_tools", '{"query":"plain tool"}')
    records = on_record(proxy, request_id="internal")
    assert [record.type for record in records] == ["internal_tool_call"] * 3
    assert [record.tool_name for record in records] == ["describe_tool", "read_cache", "retrieve_tools"]


async def test_sc_005_retrieve_tools_gives_annotations_and_call_with_for_every_tool(agent: WireClient) -> None:
    answer = await agent.call("retrieve_tools", '{"query":"the deletes tool","limit":20}')
    found = answer.decoded["result"]["structuredContent"]
    assert found["tools"][0]["name"] == "echo:deletes"
    assert found["tools"][0]["call_with"] == "call_tool_destructive"
    assert found["query"] == "the deletes tool"
    assert "Use call_tool_read for read-only operations" in found["usage_instructions"]
    for entry in found["tools"]:
        assert isinstance(entry["annotations"], dict)
        assert 0 <= entry["score"] <= 1
    by_name = {entry["name"]: entry["call_with"] for entry in found["tools"]}
    assert by_name.get("echo:plain", "call_tool_write") == "call_tool_write"
    assert by_name.get("echo:reads", "call_tool_read") == "call_tool_read"
    nonsense = await agent.call("retrieve_tools", '{"query":"xqzv wkjp"}')
    assert nonsense.decoded["result"]["structuredContent"]["tools"] == []


async def test_a_timeout_names_the_server_and_is_told_to_it(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    async with (
        running(tmp_path / "home", [echo(heard=heard, call_tool_timeout="300ms")]) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        result = await call(agent, "read", "slow", name="echo:slow", args={"steps": 50, "pause": 0.1})
        assert code(result) == "TIMEOUT"
        assert "Server 'echo' did not answer within 0.3 s" in result["content"][0]["text"]
        async with asyncio.timeout(5):
            while "cancelled" not in heard.read_text():
                await asyncio.sleep(0.05)
        (record,) = on_record(proxy, request_id="slow")
        assert record.status == "error"


async def test_progress_extends_the_timeout_up_to_the_cap(tmp_path: Path) -> None:
    servers = [echo(call_tool_timeout="400ms")]
    async with (
        running(tmp_path, servers, call_tool_max_timeout="2s") as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        patient = json.dumps({"name": "echo:slow", "args": {"steps": 6, "pause": 0.2}})
        answer = await agent.call("call_tool_read", patient, progress="p")
        assert answer.decoded["result"]["content"][0]["text"] == "done"
        endless = json.dumps({"name": "echo:slow", "args": {"steps": 40, "pause": 0.2}})
        answer = await agent.call("call_tool_read", endless, progress="q")
        assert code(answer.decoded["result"]) == "TIMEOUT"


@pytest.mark.parametrize(
    ("change", "expected", "words"),
    [
        ({"enabled": False}, "UPSTREAM_UNAVAILABLE", "mcpproxy upstream enable echo"),
        ({"quarantined": True}, "NOT_APPROVED", "mcpproxy upstream approve echo"),
        ({"command": "no-such-command"}, "UPSTREAM_UNAVAILABLE", "was not found on the PATH"),
        ({"env": {"TOKEN": "${env:NOT_SET_ANYWHERE}"}}, "UPSTREAM_UNAVAILABLE", "NOT_SET_ANYWHERE"),
    ],
)
async def test_a_server_that_cannot_take_calls_says_why_and_what_to_do(
    tmp_path: Path, change: dict[str, Any], expected: str, words: str
) -> None:
    async with (
        running(tmp_path, [{**echo(), **change}]) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        result = await call(agent, "read", "down", name="echo:plain")
        assert code(result) == expected
        assert words in result["content"][0]["text"]


async def test_a_server_that_dies_in_mid_call_costs_that_call_a_clear_error_and_comes_back(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [echo()]) as proxy,
        connected(proxy.mcp, era="legacy", lane=True) as agent,
    ):
        died = await call(agent, "write", "died", name="echo:die")
        assert code(died) == "UPSTREAM_UNAVAILABLE"
        assert "exited with code 3" in died["content"][0]["text"]
        again = await call(agent, "write", "again", name="echo:plain")
        assert "isError" not in again
