"""Does the demo upstream behave as a real MCP server? Asked of a child process by the official client."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import anyio
import jsonschema_rs
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult, TextContent, Tool

from mcpproxy.demo import notes

ERAS = {"handshake": "legacy", "2026-07-28": "2026-07-28"}

READ_ONLY = {"list_notes", "search_notes", "get_note", "note_stats", "export_notes", "slow_report"}
WRITE = {"add_note", "update_note"}
DESTRUCTIVE = {"delete_note", "clear_notes"}
UNANNOTATED = {"tag_note"}


class Demo:
    """One child process and a client that may be used from synchronous tests."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def call(self, name: str, **arguments: Any) -> CallToolResult:
        async def send() -> CallToolResult:
            return await self.client.call_tool(name, arguments)

        return self.portal.call(send)

    def data(self, name: str, **arguments: Any) -> Any:
        result = self.call(name, **arguments)
        assert not result.is_error, result
        return result.structured_content


CLIENT = {"name": "test", "version": "1"}


class Wire:
    """The bare JSON-RPC lines, for what a client library hides."""

    def __init__(self, to_child: IO[str], from_child: IO[str]) -> None:
        self.to_child = to_child
        self.from_child = from_child

    def send(self, method: str, request_id: int | None = None, **params: Any) -> None:
        head = {} if request_id is None else {"id": request_id}
        self.to_child.write(json.dumps({"jsonrpc": "2.0", **head, "method": method, "params": params}) + "\n")
        self.to_child.flush()

    def call_slow_report(self, request_id: int, seconds: float) -> None:
        arguments = {"seconds": seconds}
        meta = {"progressToken": request_id}
        self.send("tools/call", request_id, name="slow_report", arguments=arguments, _meta=meta)

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Everything up to and including the first message that is wanted."""
        seen: list[dict[str, Any]] = []
        while not seen or not wanted(seen[-1]):
            seen.append(json.loads(self.from_child.readline()))
        return seen


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@contextmanager
def running(mode: str) -> Iterator[Demo]:
    child = StdioServerParameters(command=sys.executable, args=["-m", "mcpproxy.demo"])
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(child, mode=mode)) as client,
    ):
        yield Demo(portal, client)


@pytest.fixture(scope="module", params=list(ERAS.values()), ids=list(ERAS))
def demo(request: pytest.FixtureRequest) -> Iterator[Demo]:
    with running(request.param) as started:
        yield started


@pytest.fixture
def fresh() -> Iterator[Demo]:
    with running("auto") as started:
        yield started


def test_every_kind_of_tool_is_there(demo: Demo) -> None:
    assert set(demo.tools()) == READ_ONLY | WRITE | DESTRUCTIVE | UNANNOTATED


def test_annotations_are_complete_and_say_what_each_tool_does(demo: Demo) -> None:
    for name, tool in demo.tools().items():
        hints = tool.annotations
        if name in UNANNOTATED:
            assert hints is None
            continue
        assert hints is not None
        assert hints.read_only_hint is (name in READ_ONLY)
        assert hints.destructive_hint is (name in DESTRUCTIVE)
        assert isinstance(hints.idempotent_hint, bool)
        assert hints.open_world_hint is False


def test_every_tool_and_every_argument_is_described(demo: Demo) -> None:
    for tool in demo.tools().values():
        assert tool.title and tool.description
        for name, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


def test_a_newcomer_finds_a_handful_of_notes(demo: Demo) -> None:
    listed = demo.data("list_notes")
    assert listed["total"] >= 5
    assert listed["notes"][0]["title"] == "Welcome to the notes box"
    assert {"id", "title", "tags", "updated_at"} == set(listed["notes"][0])


def test_structured_answers_keep_the_schema_they_declare(demo: Demo) -> None:
    added = demo.data("add_note", title="Schema", text="to be deleted")
    answers = {
        "list_notes": demo.data("list_notes"),
        "get_note": demo.data("get_note", id="n1"),
        "note_stats": demo.data("note_stats"),
        "add_note": added,
        "update_note": demo.data("update_note", id=added["id"], title="Schema 2"),
        "tag_note": demo.data("tag_note", id=added["id"], tag="checked"),
        "delete_note": demo.data("delete_note", id=added["id"]),
    }
    tools = demo.tools()
    assert {name for name, tool in tools.items() if tool.output_schema} == {*answers, "clear_notes"}
    for name, answer in answers.items():
        schema = tools[name].output_schema
        assert schema is not None
        jsonschema_rs.validate(schema, answer)


def test_the_text_block_repeats_the_structured_answer(demo: Demo) -> None:
    result = demo.call("get_note", id="n1")
    assert '"Welcome to the notes box"' in text_of(result)


def test_a_note_is_added_found_changed_and_deleted(demo: Demo) -> None:
    note = demo.data("add_note", title="Passport", text="Renew before the zebra trip", tags=["home", "home"])
    assert note["tags"] == ["home"]
    assert note["id"] in text_of(demo.call("search_notes", query="ZEBRA passport"))
    changed = demo.data("update_note", id=note["id"], text="Renewed")
    assert (changed["title"], changed["text"], changed["tags"]) == ("Passport", "Renewed", ["home"])
    assert demo.data("tag_note", id=note["id"], tag="done")["tags"] == ["home", "done"]
    assert demo.data("list_notes", tag="done")["notes"][0]["id"] == note["id"]
    assert demo.data("delete_note", id=note["id"])["text"] == "Renewed"
    assert demo.call("get_note", id=note["id"]).is_error


def test_a_search_without_a_hit_says_so(demo: Demo) -> None:
    result = demo.call("search_notes", query="xylophone")
    assert not result.is_error
    assert text_of(result) == "No note contains all of these words."


def test_an_unknown_note_is_an_error_that_says_what_to_do(demo: Demo) -> None:
    for tool in ("get_note", "delete_note", "update_note"):
        result = demo.call(tool, id="n999")
        assert result.is_error
        assert text_of(result) == "There is no note 'n999'. Call list_notes to see the ids."


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("get_note", {}, "missing required field `id`"),
        ("get_note", {"id": 7}, "Expected `str`, got `int` - at `$.id`"),
        ("get_note", {"note": "n1"}, "unknown field `note`"),
        ("add_note", {"title": "", "text": "x"}, "length >= 1 - at `$.title`"),
        ("add_note", {"title": "x", "text": "x" * 4001}, "length <= 4000 - at `$.text`"),
        ("add_note", {"title": "x", "text": "x", "tags": ["t"] * 11}, "length <= 10 - at `$.tags`"),
        ("slow_report", {"seconds": 301}, "<= 300.0 - at `$.seconds`"),
        ("list_notes", {"limit": 0}, ">= 1 - at `$.limit`"),
        ("export_notes", {"min_chars": 200_001}, "<= 200000 - at `$.min_chars`"),
    ],
)
def test_bad_arguments_are_an_error_that_names_the_field(
    demo: Demo, tool: str, arguments: dict[str, Any], said: str
) -> None:
    result = demo.call(tool, **arguments)
    assert result.is_error
    assert text_of(result).startswith(f"Invalid arguments for {tool}: ")
    assert said in text_of(result)


def test_an_unknown_tool_is_a_protocol_error(demo: Demo) -> None:
    with pytest.raises(MCPError, match="Unknown tool: no_such_tool"):
        demo.call("no_such_tool")


def test_note_stats_breaks_its_schema_on_request(demo: Demo) -> None:
    # The official client checks structured content itself and raises.
    with pytest.raises(RuntimeError, match="Invalid structured content returned by tool note_stats"):
        demo.call("note_stats", broken=True)


def test_a_long_export_is_as_long_as_asked(demo: Demo) -> None:
    short = text_of(demo.call("export_notes"))
    long = text_of(demo.call("export_notes", min_chars=50_000))
    assert long.startswith(short)
    assert 50_000 <= len(long) < 50_000 + len(short)


def test_the_slow_report_tells_how_far_it_is(demo: Demo) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def send() -> CallToolResult:
        return await demo.client.call_tool("slow_report", {"seconds": 0.2}, progress_callback=watch)

    assert text_of(demo.portal.call(send)).startswith("After 0.2 s: ")
    assert len(seen) == 11
    assert [value for value, _, _ in seen] == sorted(value for value, _, _ in seen)
    assert seen[-1] == (0.2, 0.2, "The report is ready")


def test_a_cancelled_slow_report_leaves_the_connection_usable(demo: Demo) -> None:
    async def send() -> bool:
        with anyio.move_on_after(0.2) as scope:
            await demo.client.call_tool("slow_report", {"seconds": 300})
        return scope.cancelled_caught

    assert demo.portal.call(send)
    assert demo.data("list_notes")["total"] >= 5


def test_a_cancelled_slow_report_is_heard_of_no_more() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mcpproxy.demo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin and child.stdout
        wire = Wire(child.stdin, child.stdout)
        wire.send("initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo=CLIENT)
        wire.send("notifications/initialized")
        wire.until(lambda message: message.get("id") == 1)
        wire.call_slow_report(2, seconds=1)
        wire.until(lambda message: message.get("method") == "notifications/progress")
        wire.send("notifications/cancelled", requestId=2)
        wire.send("ping", 3)
        wire.until(lambda message: message.get("id") == 3)
        # The ping came after the cancellation, so whatever the first call still does would show from here on.
        wire.call_slow_report(4, seconds=0.5)
        later = wire.until(lambda message: message.get("id") == 4)
        child.stdin.close()
    assert {message["params"]["progressToken"] for message in later if "params" in message} == {4}
    assert all(message.get("id") != 2 for message in later)


def test_clear_notes_empties_the_box_and_everything_still_answers(fresh: Demo) -> None:
    assert fresh.data("clear_notes") == {"deleted": 6}
    assert fresh.data("list_notes") == {"notes": [], "total": 0}
    assert text_of(fresh.call("export_notes")) == "The box is empty.\n"
    assert fresh.data("note_stats") == {"notes": 0, "words": 0, "tags": {}}


def test_the_box_takes_no_more_notes_than_its_bound(fresh: Demo) -> None:
    for number in range(notes.MAX_NOTES - 6):
        assert not fresh.call("add_note", title=f"Note {number}", text="x").is_error
    full = fresh.call("add_note", title="One too many", text="x")
    assert full.is_error
    assert text_of(full) == "The box is full (200 notes). Delete a note first."
    fresh.data("delete_note", id="n1")
    assert fresh.data("add_note", title="Now it fits", text="x")["id"] == "n201"


def test_a_note_takes_no_more_tags_than_its_bound(fresh: Demo) -> None:
    fresh.data("update_note", id="n1", tags=[f"t{number}" for number in range(10)])
    assert fresh.data("tag_note", id="n1", tag="t3")["tags"][3] == "t3"
    refused = fresh.call("tag_note", id="n1", tag="t10")
    assert refused.is_error
    assert "already has 10 tags" in text_of(refused)


def test_the_server_ends_when_its_stdin_ends() -> None:
    async def start_and_leave() -> int:
        async with await anyio.open_process([sys.executable, "-m", "mcpproxy.demo"]) as child:
            assert child.stdin is not None
            await child.stdin.aclose()
            with anyio.fail_after(20):
                return await child.wait()

    assert anyio.run(start_and_leave) == 0
