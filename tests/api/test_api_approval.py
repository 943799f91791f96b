"""`/tools/waiting` and the decision: what a server holds out is used only in the version that an operator saw."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.serving import Rest, serving
from tests.calls.proxy import echo


@pytest.fixture
def rest(tmp_path: Any) -> Iterator[Rest]:
    with serving(tmp_path / "data", [echo(trust="manual")]) as found:
        yield found


def waiting(rest: Rest, name: str) -> Any:
    return next(tool for tool in rest.get("tools/waiting")["waiting"] if tool["name"] == name)


def call(rest: Rest, name: str) -> int:
    return rest.ask("POST", "tools/call", json={"name": name, "variant": "read"}).status_code


def test_a_tool_waits_until_it_is_approved_and_the_decision_is_on_record(rest: Rest) -> None:
    assert rest.get("tools")["total"] == 0
    assert call(rest, "echo:reads") == 403
    held = waiting(rest, "echo:reads")
    assert held["state"] == "pending"
    body = {"name": "echo:reads", "version": held["version"]}
    decided = rest.post("tools/approve", body, headers={"X-Request-Id": "decide-1"})
    assert decided == {"name": "echo:reads", "decision": "approved"}
    assert call(rest, "echo:reads") == 200
    assert call(rest, "echo:raw") == 403
    records = rest.get("activity?request_id=decide-1")["activities"]
    assert records
    assert {record["source"] for record in records} == {"api"}


def test_a_decision_about_another_version_is_409_and_about_nothing_404(rest: Rest) -> None:
    rest.error("POST", "tools/approve", 409, json={"name": "echo:reads", "version": "0" * 64})
    rest.error("POST", "tools/approve", 404, json={"name": "echo:nothing", "version": "0" * 64})
    rest.error("POST", "tools/reject", 422, json={"name": "echo", "version": "x"})
    assert call(rest, "echo:reads") == 403


def test_a_refused_tool_stays_out(rest: Rest) -> None:
    body = {"name": "echo:reads", "version": waiting(rest, "echo:reads")["version"]}
    assert rest.post("tools/reject", body)["decision"] == "rejected"
    assert waiting(rest, "echo:reads")["state"] == "rejected"
    assert call(rest, "echo:reads") == 403


def test_all_that_waits_on_a_server_is_approved_at_once(rest: Rest) -> None:
    listed = rest.get("tools/waiting")
    rest.post("tools/approve", {"name": "echo", "version": listed["servers"]["echo"]})
    assert rest.get("tools/waiting") == {"waiting": [], "servers": {}}
    assert rest.get("tools")["total"] == len(listed["waiting"])
