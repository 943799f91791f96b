"""`/config`: shown without secrets, changed with care, and in force at once."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.serving import Rest, serving
from tests.calls.proxy import KEY, echo


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with serving(tmp_path_factory.mktemp("shared") / "data", [echo(enabled=False)], my_own_note="kept") as found:
        yield found


@pytest.fixture
def rest(shared: Rest) -> Iterator[Rest]:
    """A proxy whose configuration is as it was once the test is over."""
    before = shared.proxy.path.read_bytes()
    yield shared
    shared.proxy.path.write_bytes(before)
    shared.run(shared.proxy.app._watch.look())


def in_file(rest: Rest) -> Any:
    return json.loads(rest.proxy.path.read_text())


def test_the_configuration_is_shown_whole_without_secrets(rest: Rest) -> None:
    shown = rest.get("config")
    assert shown["config"]["api_key"] == "***"
    assert shown["config"]["tools_limit"] == 15
    assert shown["config"]["call_tool_timeout"] == "2m"
    assert shown["config"]["mcpServers"][0]["name"] == "echo"
    assert shown["path"] == str(rest.proxy.path)
    assert shown["restart_keys"] == ["listen", "storage"]
    assert any("my_own_note" in warning for warning in shown["warnings"])
    assert KEY not in json.dumps(shown)


def test_a_change_is_merged_written_and_in_force(rest: Rest) -> None:
    body = {"tools_limit": 20, "output_validation": {"mode": "strict"}, "call_tool_timeout": "5s"}
    changed = rest.patch("config", body, headers={"X-Request-Id": "config-1"})
    assert sorted(changed["changed"]) == ["call_tool_timeout", "output_validation.mode", "tools_limit"]
    assert changed["restart_required"] == []
    assert changed["config"]["output_validation"]["mode"] == "strict"
    assert changed["config"]["output_validation"]["max_depth"] == 64
    assert in_file(rest)["my_own_note"] == "kept"
    assert rest.proxy.app.config.tools_limit == 20
    record = rest.get("activity?request_id=config-1")["activities"][0]
    assert (record["type"], record["source"], record["status"]) == ("config_change", "api", "success")
    back = rest.patch("config", {"tools_limit": None, "output_validation": {"mode": None}})
    assert back["config"]["tools_limit"] == 15
    assert "tools_limit" not in in_file(rest)
    assert rest.patch("config", {})["changed"] == []


def test_a_key_that_needs_a_restart_is_named(rest: Rest) -> None:
    changed = rest.patch("config", {"listen": "127.0.0.1:8099"})
    assert changed["restart_required"] == ["listen"]
    assert in_file(rest)["listen"] == "127.0.0.1:8099"


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"tools_limit": 0}, "tools_limit", "from 1 to 100"),
        ({"tools_limit": "many"}, "tools_limit", "whole number"),
        ({"output_validation": {"mode": "loud"}}, "output_validation.mode", '"off"'),
        ({"tool_limit": 5}, "tool_limit", "tools_limit"),
        ({"output_validation": {"mod": "warn"}}, "output_validation.mod", "mode"),
        ({"call_tool_timeout": "soon"}, "call_tool_timeout", "2m"),
        ({"api_key": "Bearer ***"}, "api_key", "hidden value"),
        ({"mcpServers": []}, "mcpServers", "/api/v1/servers"),
        ({"listen": "nowhere"}, "listen", "host:port"),
    ],
)
def test_a_change_that_would_not_load_is_422_and_not_written(
    rest: Rest, body: dict[str, Any], field: str, said: str
) -> None:
    before = rest.proxy.path.read_bytes()
    error = rest.error("PATCH", "config", 422, json=body)
    assert error["details"]["fields"][0]["field"] == field
    assert said in error["message"], error
    assert rest.proxy.path.read_bytes() == before


def test_a_mask_that_comes_back_leaves_the_secret_alone(rest: Rest) -> None:
    shown = rest.get("config")["config"]
    del shown["mcpServers"]
    changed = rest.patch("config", {**shown, "tools_limit": 16})
    assert changed["changed"] == ["tools_limit"]
    assert in_file(rest)["api_key"] == KEY
    assert rest.get("config")["config"]["tools_limit"] == 16


def test_the_key_can_be_changed_and_holds_at_once(rest: Rest) -> None:
    new = "f" * 64
    rest.patch("config", {"api_key": new})
    rest.error("GET", "config", 401)
    assert rest.get("config", key=new)["config"]["api_key"] == "***"


def test_a_configuration_is_checked_without_being_taken(rest: Rest) -> None:
    before = rest.proxy.path.read_bytes()
    good = rest.post("config/validate", {"tools_limit": 20, "listen": "127.0.0.1:9", "mcpServers": [], "nots": 1})
    assert (good["valid"], good["problems"]) == (True, [])
    assert good["restart_required"] == ["listen"]
    assert set(good["changed"]) == {"tools_limit", "listen", "mcpServers.echo"}
    assert any("nots" in warning for warning in good["warnings"])
    bad = rest.post("config/validate", {"tools_limit": 0, "mcpServers": [{"name": "x"}]})
    assert bad["valid"] is False
    assert [problem["path"] for problem in bad["problems"]] == ["tools_limit", "mcpServers[0]"]
    assert bad["problems"][0]["allowed"] == "use a whole number from 1 to 100"
    assert rest.proxy.path.read_bytes() == before


def test_what_is_shown_validates_as_it_is(rest: Rest) -> None:
    checked = rest.post("config/validate", rest.get("config")["config"])
    assert (checked["valid"], checked["changed"]) == (True, [])


def test_the_status_tells_of_a_file_that_does_not_load(rest: Rest) -> None:
    before = rest.get("status")
    assert set(before) == {"version", "listen", "started_at", "servers", "tools", "config"}
    assert set(before["config"]) == {"path", "loaded_at"}
    text = rest.proxy.path.read_text()
    rest.proxy.path.write_text(text.replace('"my_own_note"', '"tools_limit": 0, "my_own_note"'))
    rest.run(rest.proxy.app._watch.look())
    assert "tools_limit" in rest.get("status")["config"]["error"]
    assert "mcpproxy_config_error 1.0" in rest.ask("GET", "/metrics").text
    rest.proxy.path.write_text(text)
    rest.run(rest.proxy.app._watch.look())
    assert "error" not in rest.get("status")["config"]
