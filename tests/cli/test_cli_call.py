"""Tools are called from a terminal and from scripts, with the daemon and without."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import make_home, servers
from tests.cli.terminal import Home

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(params=["daemon", "alone"])
def home(request: pytest.FixtureRequest) -> Home:
    """Both ways for the same call."""
    found: Home = request.getfixturevalue(request.param)
    return found


def raw(value: Any) -> str:
    """Arguments that make the echo server answer with this."""
    return json.dumps({"result": json.dumps(value)})


def records(home: Home, *filters: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.json("activity", "list", *filters)["activities"]
    return found


def test_a_call_prints_the_raw_result_and_is_on_record_as_the_command_lines(home: Home) -> None:
    content = '[{"type": "text", "text": "hi"}]'
    result = f'{{"resultType":"complete","content": {content}, "structuredContent": {{"n": 0.10, "big": 1e400}}}}'
    words = ("echo:raw", "--args", json.dumps({"result": result}), "--reason", "a look", "--sensitivity", "public")
    out = home.ok("call", "tool-read", *words)
    assert out == result + "\n"
    record = records(home, "--tool", "echo:raw", "-n", "1")[0]
    assert (record["source"], record["status"], record["type"]) == ("cli", "success", "tool_call")
    assert record["metadata"]["intent"] == {"operation_type": "read", "data_sensitivity": "public", "reason": "a look"}
    assert record["metadata"]["tool_variant"] == "call_tool_read"


def test_a_destructive_tool_is_refused_through_tool_read(home: Home) -> None:
    result = home.run("call", "tool-read", "echo:deletes")
    assert result.returncode == 1
    assert result.stdout == ""
    assert (
        "Tool 'echo:deletes' is marked destructive by server, use call_tool_destructive instead of call_tool_read"
        in result.stderr
    )
    assert "mcpproxy call tool-destructive echo:deletes" in result.stderr
    assert home.run("call", "tool-destructive", "echo:deletes").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--tool-name=echo:strict_input", '--json_args={"city": "Bonn"}'),
        ("echo:strict_input", "--args", '{"city": "Bonn"}'),
        ("echo:strict_input", "city=Bonn"),
        ("city=Bonn", "--tool-name", "echo:strict_input"),
        ("echo:strict_input", "--json-args", "@arguments.json"),
        ("echo:strict_input", "days=2", "--args", "-"),
    ],
)
def test_every_spelling_of_a_call_works(daemon: Home, words: tuple[str, ...]) -> None:
    (daemon.path / "arguments.json").write_text('{"city": "Bonn"}')
    out = daemon.ok("call", "tool-read", *words, stdin='{"city": "Bonn"}')
    assert json.loads(out)["content"][0]["text"] == "strict_input done"


def test_pairs_are_typed_by_the_schema_also_without_a_daemon(alone: Home) -> None:
    assert alone.run("call", "tool-read", "echo:strict_input", "city=12", "days=3").returncode == 0
    result = alone.run("call", "tool-read", "echo:strict_input", "city=Bonn", "days=soon")
    assert result.returncode == 2
    assert "days: 'soon' is not a whole number" in result.stderr


def test_arguments_that_the_tool_does_not_take_are_refused_and_said_so(daemon: Home) -> None:
    result = daemon.run("call", "tool-read", "echo:strict_input", "--args", '{"days": 9}', "-o", "json")
    assert result.returncode == 1
    complaint = json.loads(result.stderr)
    assert complaint["code"] == "INVALID_ARGUMENTS"
    assert "city" in complaint["message"]
    assert complaint["hint"] == "See what it takes: mcpproxy tools show echo:strict_input"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("nobody:knows",), "UNKNOWN_SERVER"),
        (("echo:nothing",), "UNKNOWN_TOOL"),
        (("echo:reads", "--sensitivity", "secret"), "INVALID_SENSITIVITY"),
        (("echo:reads", "--reason", "x" * 1001), "REASON_TOO_LONG"),
    ],
)
def test_a_refusal_is_json_on_stderr_where_json_is_asked_for(daemon: Home, words: tuple[str, ...], code: str) -> None:
    result = daemon.run("call", "tool-read", *words, "--json")
    assert result.returncode == 1
    assert result.stdout == ""
    assert json.loads(result.stderr)["code"] == code


def test_call_tool_answers_with_the_three_variants(daemon: Home) -> None:
    result = daemon.run("call", "tool", "echo:reads", "--whatever", "x")
    assert result.returncode == 2
    for variant in ("tool-read", "tool-write", "tool-destructive"):
        assert variant in result.stderr


def test_two_key_mode_is_satisfied_by_the_command(tmp_path: Path) -> None:
    home = make_home(tmp_path, servers(), intent_declaration={"require_operation_type": True})
    assert home.run("call", "tool-write", "echo:modifies").returncode == 0


def test_an_error_of_the_tool_is_printed_and_exits_1(daemon: Home) -> None:
    answer = {"content": [{"type": "text", "text": "no milk"}], "isError": True}
    result = daemon.run("call", "tool-read", "echo:raw", "--args", raw(answer))
    assert result.returncode == 1
    assert json.loads(result.stdout)["content"] == answer["content"]
    assert "reported an error" in result.stderr


def test_on_a_terminal_a_result_is_readable_and_hostile_text_is_harmless(daemon: Home) -> None:
    answer = {
        "content": [
            {"type": "text", "text": "\x1b]0;pwned\x07\x1b[2Jhello [bold]world[/bold]\r\u202eevil"},
            {"type": "image", "mimeType": "image/png", "data": PIXEL},
            {"type": "text", "text": '{"a": 1}'},
        ],
        "structuredContent": {"a": 1, "b": "\x1b[31mx"},
    }
    with daemon.terminal("call", "tool-read", "echo:raw", "--args", raw(answer)) as terminal:
        assert terminal.end() == 0
        assert "\x1b]0;" not in terminal.text
        assert "\x1b[2J" not in terminal.text
        assert "\u202e" not in terminal.text
        assert "hello [bold]world[/bold]" in terminal.plain
        assert "[image image/png, 70 B]" in terminal.plain
        assert '"b": "\\u001b[31mx"' in terminal.plain


def test_structured_content_that_the_text_repeats_is_shown_once(daemon: Home) -> None:
    answer = {"content": [{"type": "text", "text": '{"count": 41}'}], "structuredContent": {"count": 41}}
    assert daemon.shown("call", "tool-read", "echo:raw", "--args", raw(answer)).count("41") == 1


def test_images_are_saved_under_names_that_the_server_has_no_say_in(daemon: Home, tmp_path: Path) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": PIXEL}
    blob = {"type": "resource", "resource": {"uri": "file:///../../etc/x", "mimeType": "../x", "blob": "aGk="}}
    arguments = raw({"content": [image, blob]})
    result = daemon.run("call", "tool-read", "echo:raw", "--args", arguments, "--save", f"{tmp_path}/out/")
    assert result.returncode == 0, result.stderr
    saved = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in saved] == ["echo-raw-1.png", "echo-raw-2.bin"]
    assert saved[0].read_bytes().startswith(b"\x89PNG")
    one = daemon.run("call", "tool-read", "echo:raw", "--args", raw({"content": [image]}), "--save", tmp_path / "a.png")
    assert one.returncode == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_save_is_said_so(daemon: Home) -> None:
    result = daemon.run("call", "tool-read", "echo:reads", "--save", "x.png")
    assert result.returncode == 1
    assert "no image, sound or file" in result.stderr


def test_progress_is_a_bar_on_a_terminal(home: Home) -> None:
    with home.terminal("call", "tool-read", "echo:slow", "steps=4", "pause=0.2") as terminal:
        terminal.until("on it")
        terminal.until("100%")
        assert terminal.end() == 0
        assert terminal.plain.rstrip().endswith("done")


@pytest.mark.parametrize("way", ["daemon", "alone"])
def test_ctrl_c_cancels_the_call_at_the_server(tmp_path: Path, way: str, daemon: Home) -> None:
    heard = tmp_path / "heard"
    entry = {**servers()["echo"], "env": {"HEARD": str(heard)}}
    if way == "daemon":
        home, name = daemon, "hears"
        home.ok("upstream", "add-json", name, json.dumps(entry))
    else:
        home, name = make_home(tmp_path, {"hears": entry}), "hears"
    with home.terminal("call", "tool-write", f"{name}:slow_write", "--args", '{"pause": 30}') as terminal:
        wait_for(heard, "call slow_write")
        terminal.interrupt()
        assert terminal.end() == 130
        wait_for(heard, "cancelled")
    if way == "daemon":
        home.ok("upstream", "remove", name)
    record = records(home, "--tool", f"{name}:slow_write", "--type", "tool_call")[0]
    assert record["status"] == "interrupted"


def wait_for(path: Path, sign: str) -> None:
    deadline = time.monotonic() + 30
    while not (path.exists() and sign in path.read_text()):
        assert time.monotonic() < deadline, f"{sign!r} was never heard"
        time.sleep(0.02)


def test_only_the_server_that_is_needed_is_started(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    other = {**servers()["echo"], "command": "/bin/sh", "args": ["-c", f"touch {heard}; sleep 5"]}
    home = make_home(tmp_path, {**servers(), "other": other})
    assert home.run("call", "tool-read", "echo:reads").returncode == 0
    assert not heard.exists()


def test_a_call_without_a_daemon_leaves_its_own_record_and_no_starts_and_stops(alone: Home) -> None:
    alone.ok("call", "tool-read", "echo:plain")
    assert {record["type"] for record in records(alone)} <= {"tool_call", "tool_change"}


def test_json_stays_parseable_whatever_is_logged(home: Home) -> None:
    result = home.run("call", "tool-read", "demo:list_notes", "limit=1", "-o", "json", "--log-level", "debug")
    assert result.returncode == 0
    assert json.loads(result.stdout)["structuredContent"]["notes"]
