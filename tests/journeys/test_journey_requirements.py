"""The requirements of the seeds that only the whole shows: discovery, command line, log and REST, by their numbers."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.support import Proxy, run, serving

ECHO = Path(__file__).parents[1] / "calls" / "echo_server.py"
READ, WRITE, DESTRUCTIVE = "tool-read", "tool-write", "tool-destructive"
TOOL = {READ: "echo:reads", WRITE: "echo:plain", DESTRUCTIVE: "echo:deletes"}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    servers = {"echo": {"command": sys.executable, "args": [str(ECHO)]}}
    with serving(tmp_path_factory.mktemp("requirements"), servers) as running:
        running.await_ready("echo")
        for command, tool in TOOL.items():
            cli(running, "call", command, tool, "--reason", "to show it", "--sensitivity", "internal")
        yield running


def cli(proxy: Proxy, *words: str, code: int = 0) -> str:
    """What a command prints; it must end with this exit code."""
    done = run(proxy.home, *words, "--config", str(proxy.config), "--data-dir", str(proxy.data))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def found(proxy: Proxy, query: str) -> dict[str, Any]:
    """The tools that a search finds, by name."""
    answer = proxy.api(f"/tools/search?q={query}&limit=20")
    return {"instructions": answer["usage_instructions"], **{entry["name"]: entry for entry in answer["tools"]}}


def test_fr_021_and_fr_022_every_entry_has_annotations_with_the_hints_of_its_server(proxy: Proxy) -> None:
    assert found(proxy, "deletes")["echo:deletes"]["annotations"] == {"destructiveHint": True}
    assert found(proxy, "reads")["echo:reads"]["annotations"] == {"readOnlyHint": True}
    assert found(proxy, "plain")["echo:plain"]["annotations"] == {}


def test_fr_023_to_fr_025_the_answer_says_which_variant_to_use(proxy: Proxy) -> None:
    answer = found(proxy, "deletes")
    assert answer["echo:deletes"]["call_with"] == "call_tool_destructive"
    for variant in ("call_tool_read", "call_tool_write", "call_tool_destructive"):
        assert variant in answer["instructions"]


@pytest.mark.parametrize("command", TOOL)
def test_fr_026_to_fr_028_and_sc_006_each_command_calls_a_tool_in_both_spellings(proxy: Proxy, command: str) -> None:
    bare = TOOL[command].partition(":")[2]
    assert f"{bare} done" in cli(proxy, "call", command, f"--tool-name={TOOL[command]}", "--json_args={}")
    assert f"{bare} done" in cli(proxy, "call", command, TOOL[command], "--args", "{}")


def test_fr_026_a_destructive_tool_is_refused_through_tool_read(proxy: Proxy) -> None:
    refused = cli(proxy, "call", READ, "echo:deletes", code=1)
    assert "is marked destructive by server, use call_tool_destructive instead of call_tool_read" in refused


@pytest.mark.parametrize(("command", "operation"), [(READ, "read"), (WRITE, "write"), (DESTRUCTIVE, "destructive")])
def test_fr_029_and_fr_030_a_command_fills_in_its_operation_type_and_takes_reason_and_sensitivity(
    proxy: Proxy, command: str, operation: str
) -> None:
    records = proxy.api(f"/activity?type=tool_call&intent_type={operation}&q=show")["activities"]
    assert records[0]["metadata"]["intent"] == {
        "operation_type": operation,
        "data_sensitivity": "internal",
        "reason": "to show it",
    }
    assert records[0]["source"] == "cli"


def test_fr_034_and_fr_035_the_list_has_a_column_with_the_operation_type(proxy: Proxy) -> None:
    head, *rows = cli(proxy, "activity", "list", "--type", "tool_call").splitlines()
    place = head.split("\t").index("INTENT")
    assert {row.split("\t")[place] for row in rows} == {"read", "write", "destr"}


def test_fr_036_show_prints_the_intent(proxy: Proxy) -> None:
    record = proxy.api("/activity?type=tool_call&intent_type=destructive&q=show")["activities"][0]
    shown = cli(proxy, "activity", "show", record["id"])
    for word in ("destructive", "internal", "to show it", "call_tool_destructive"):
        assert word in shown


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_fr_037_json_and_yaml_carry_the_whole_intent(proxy: Proxy, output: str) -> None:
    shown = cli(proxy, "activity", "list", "--type", "tool_call", "-o", output)
    assert "operation_type" in shown and "to show it" in shown and "call_tool_destructive" in shown


def test_fr_038_and_fr_039_rest_gives_the_intent_and_filters_by_it(proxy: Proxy) -> None:
    for kind in ("read", "write", "destructive"):
        records = proxy.api(f"/activity?intent_type={kind}")["activities"]
        assert records
        assert {record["metadata"]["intent"]["operation_type"] for record in records} == {kind}


def test_sc_001_each_variant_is_a_tool_of_its_own_with_hints_that_a_client_can_go_by(proxy: Proxy) -> None:
    from tests.agent.wire_client import connected

    async def listed() -> dict[str, Any]:
        async with connected(proxy.url, era="legacy", lane=False) as client:
            answer = await client.post('{"jsonrpc":"2.0","id":9,"method":"tools/list"}')
        return {tool["name"]: tool["annotations"] for tool in answer.decoded["result"]["tools"]}

    import asyncio

    hints = asyncio.run(listed())
    assert hints["call_tool_read"]["readOnlyHint"] is True
    assert hints["call_tool_write"] == hints["call_tool_write"] | {"readOnlyHint": False, "destructiveHint": False}
    assert hints["call_tool_destructive"]["destructiveHint"] is True


def test_json_output_is_one_document(proxy: Proxy) -> None:
    assert json.loads(cli(proxy, "activity", "list", "-o", "json", "--log-level", "debug"))["activities"]
