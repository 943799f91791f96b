"""`/servers`: everything an operator does with a server, in the file and in force at once."""

import json
import sys
from typing import Any

import pytest
from tests.api.serving import Rest, serving
from tests.calls.proxy import ECHO, echo


def entry(rest: Rest, name: str) -> Any:
    """A server's entry as it stands in the file."""
    return next(item for item in json.loads(rest.proxy.path.read_text())["mcpServers"] if item["name"] == name)


def state(rest: Rest, name: str, wanted: str) -> Any:
    """The server, once it has the state."""
    for _ in range(200):
        found = rest.get(f"servers/{name}")
        if found["state"] == wanted:
            return found
        rest.run(_pause())
    raise AssertionError(f"{name} is {found['state']}: {found.get('reason')}")


async def _pause() -> None:
    import asyncio

    await asyncio.sleep(0.05)


def test_the_list_tells_state_tools_and_entry(rest: Rest) -> None:
    found = rest.get("servers")["servers"]
    assert [server["name"] for server in found][:2] == ["echo", "other"]
    server = found[0]
    assert (server["state"], server["protocol"], server["stale"]) == ("ready", "stdio", False)
    assert server["tools"] == rest.get("servers/echo/tools")["total"] > 10
    assert server["config"]["command"] == sys.executable
    assert rest.get("servers/echo") == server


def test_a_server_is_added_changed_and_removed(rest: Rest) -> None:
    added = rest.post("servers", echo("new"), status=201, headers={"X-Request-Id": "add-1"})
    assert added["name"] == "new"
    assert state(rest, "new", "ready")["tools"] > 10
    changed = rest.patch("servers/new", {"disabled_tools": ["die"], "env": {"MODE": "quick"}})
    assert changed["config"]["disabled_tools"] == ["die"]
    assert entry(rest, "new")["env"]["MODE"] == "quick"
    assert rest.patch("servers/new", {"env": {"MODE": None}})["config"]["env"] == {}
    assert rest.delete("servers/new") == {"name": "new"}
    rest.error("GET", "servers/new", 404)
    assert "new" not in rest.proxy.path.read_text()
    records = rest.get("activity?request_id=add-1")["activities"]
    assert {(record["type"], record["source"]) for record in records} == {
        ("server_change", "api"),
        ("config_change", "api"),
    }


def test_a_name_that_is_taken_is_409(rest: Rest) -> None:
    assert rest.error("POST", "servers", 409, json=echo("echo"))["code"] == "CONFLICT"


def test_a_server_that_was_never_reached_has_a_protocol_too(rest: Rest) -> None:
    added = rest.post("servers", {"name": "nowhere", "url": "http://127.0.0.1:1/mcp", "enabled": False}, status=201)
    assert added["protocol"] == "http"
    rest.delete("servers/nowhere")


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({}, "name", "name"),
        ({"name": "x"}, "body", "command"),
        ({"name": "a:b", "command": "x"}, "name", "not allowed"),
        ({"name": "x", "command": "c", "url": "http://h/"}, "body", "url"),
        ({"name": "x", "url": "ftp://h/"}, "url", "http"),
        ({"name": "x", "url": "http://h/", "protocol": "htp"}, "protocol", '"http", "sse" or "stdio"'),
        ({"name": "x", "command": "c", "args": "one"}, "args", "list"),
        ({"name": "x", "command": "c", "enabled": "yes"}, "enabled", "true"),
    ],
)
def test_an_entry_that_would_not_load_is_422_and_not_written(
    rest: Rest, body: dict[str, Any], field: str, said: str
) -> None:
    before = rest.proxy.path.read_text()
    error = rest.error("POST", "servers", 422, json=body)
    assert error["details"]["fields"][0]["field"].startswith(field), error
    assert said in error["message"]
    assert rest.proxy.path.read_text() == before


def test_a_key_that_is_not_known_gets_a_remark(rest: Rest) -> None:
    added = rest.post("servers", {**echo("remarked", enabled=False), "enviroment": {}}, status=201)
    assert any("enviroment" in warning for warning in added["warnings"])
    rest.delete("servers/remarked")


def test_a_server_is_disabled_and_enabled_quarantined_and_approved(rest: Rest) -> None:
    assert rest.post("servers/other/disable") == {"name": "other", "state": "disabled"}
    assert entry(rest, "other")["enabled"] is False
    assert rest.get("servers/other/tools")["total"] == 0
    assert rest.get("tools?server=other")["total"] == 0
    rest.post("servers/other/enable")
    assert state(rest, "other", "ready")["tools"] > 10
    assert rest.post("servers/other/quarantine") == {"name": "other", "state": "quarantined"}
    rest.post("servers/other/approve")
    state(rest, "other", "ready")


def test_a_restart_makes_a_new_process_and_is_on_record(rest: Rest) -> None:
    since = state(rest, "other", "ready")["since"]
    rest.post("servers/other/restart", headers={"X-Request-Id": "restart-1"})
    assert state(rest, "other", "ready")["since"] > since
    record = rest.get("activity?request_id=restart-1")["activities"][0]
    assert (record["type"], record["metadata"]) == ("server_change", {"change": "restarted"})


def test_the_log_shows_why_a_server_does_not_start(rest: Rest) -> None:
    program = "import sys; sys.exit('cannot find my settings')"
    rest.post("servers", {"name": "broken", "command": sys.executable, "args": ["-c", program]}, status=201)
    found = state(rest, "broken", "backing_off")
    assert "cannot find my settings" in found["reason"]
    assert found["retry_at"] > found["since"]
    assert any("cannot find my settings" in line for line in rest.get("servers/broken/logs")["lines"])
    assert len(rest.get("servers/broken/logs?limit=1")["lines"]) == 1
    rest.delete("servers/broken")


def test_a_server_without_a_login_says_so(rest: Rest) -> None:
    assert "not one that is logged in to" in rest.error("POST", "servers/echo/login", 409)["message"]


@pytest.mark.parametrize("action", ["enable", "disable", "restart", "quarantine", "approve", "login"])
def test_an_unknown_server_is_404(rest: Rest, action: str) -> None:
    rest.error("POST", f"servers/nobody/{action}", 404)
    rest.error("GET", "servers/nobody/tools", 404)
    rest.error("GET", "servers/nobody/logs", 404)
    rest.error("PATCH", "servers/nobody", 404, json={})
    rest.error("DELETE", "servers/nobody", 404)


def test_a_server_cannot_be_renamed(rest: Rest) -> None:
    error = rest.error("PATCH", "servers/echo", 422, json={"name": "better"})
    assert error["details"]["fields"][0]["field"] == "name"


def test_a_mask_that_comes_back_leaves_the_secret_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = "s3cr3t-value-of-mine"
    server = {
        **echo("secretive", enabled=False),
        "args": [str(ECHO), "--token", secret, "--api-key", secret + "2"],
        "env": {"API_TOKEN": secret},
    }
    with serving(tmp_path_factory.mktemp("masks") / "data", [server]) as rest:
        shown = rest.get("servers/secretive")["config"]
        assert secret not in json.dumps(shown)
        rest.patch("servers/secretive", {**shown, "working_dir": "/tmp"})
        kept = entry(rest, "secretive")
        assert kept["env"]["API_TOKEN"] == secret
        assert kept["args"] == server["args"]
        assert kept["working_dir"] == "/tmp"
        for changed in (
            {"args": ["--token", "***"]},  # which of the two?
            {"args": [str(ECHO), "--api-key", "***", "--token", "***"]},
            {"env": {"OTHER": "***"}},
            {"headers": {"Authorization": "Bearer ***"}},
        ):
            error = rest.error("PATCH", "servers/secretive", 422, json=changed)
            assert "stands for a hidden value" in error["message"]
        rest.patch("servers/secretive", {"args": [*shown["args"], "--verbose"]})
        assert entry(rest, "secretive")["args"] == [*server["args"], "--verbose"]


def test_a_file_with_comments_is_left_to_its_author(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("comments") / "data", [echo(enabled=False)]) as rest:
        text = rest.proxy.path.read_text()
        rest.proxy.path.write_text("// mine\n" + text)
        assert "comments" in rest.error("POST", "servers/echo/enable", 409)["message"]
        rest.proxy.path.write_text("{")
        assert "does not load" in rest.error("POST", "servers/echo/enable", 409)["message"]
