"""`/activity`: lists in pages, counts, exports and the check of the chain, over REST."""

import csv
import json
import sqlite3
import threading
from typing import Any

import pytest
from tests.api.serving import Rest

from mcpproxy.activity.verify import verify_in
from mcpproxy.api import activity as activity_api


@pytest.fixture(scope="module", autouse=True)
def some_calls(rest: Rest) -> None:
    for number in range(12):
        server = "echo" if number % 3 else "other"
        body = {"name": f"{server}:reads", "variant": "read", "intent": {"reason": f"look number{number}"}}
        rest.post("tools/call", body, headers={"X-Request-Id": f"call-{number}"})
    rest.error("POST", "tools/call", 403, json={"name": "echo:deletes", "variant": "write"})


def ids(page: Any) -> list[str]:
    return [record["id"] for record in page["activities"]]


def test_a_list_has_whole_records_newest_first(rest: Rest) -> None:
    page = rest.get("activity?type=tool_call&status=success")
    record = page["activities"][0]
    assert set(record) == set(activity_api.Activity.model_fields)
    assert record["metadata"]["intent"] == {"operation_type": "read", "reason": "look number11"}
    assert record["metadata"]["tool_variant"] == "call_tool_read"
    assert record["response"]["content"][0]["text"] == "reads done"
    assert page["total"] == len(page["activities"]) == 12
    assert page["total_exact"] is True
    assert page["next_cursor"] is None
    assert rest.get(f"activity/{record['id']}") == record


def test_pages_follow_each_other_without_gap_or_repeat_while_new_records_arrive(rest: Rest) -> None:
    whole = ids(rest.get("activity?type=tool_call&limit=1000"))
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = rest.get(f"activity?type=tool_call&limit=5&cursor={cursor}")
        assert len(page["activities"]) <= 5
        found += ids(page)
        cursor = page["next_cursor"]
        rest.post("tools/call", {"name": "echo:plain", "variant": "write"})
    assert found == whole


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("type=tool_call&server=other&intent_type=read", 4),
        ("tool=other:reads", 4),
        ("tool=reads&status=success", 12),
        ("request_id=call-3", 1),
        ("status=blocked&type=policy_decision", 1),
        ("intent_type=write&status=blocked", 2),
        ("q=number7", 1),
        ("q=look&type=tool_call&server=echo", 8),
        ("type=&status=&server=other&tool=&intent_type=&q=&start_time=&end_time=&type=tool_call", None),
        ("tool=reads&start_time=1h&end_time=2100-01-01", 12),
        ("tool=reads&start_time=2100-01-01T00:00:00Z", 0),
        ("session_id=none", 0),
    ],
)
def test_filters_find_what_they_say(rest: Rest, query: str, count: int | None) -> None:
    if count is None:
        rest.error("GET", f"activity?{query}", 422)
        query = query.removesuffix("&type=tool_call")
        count = rest.get("activity?server=other")["total"]
    assert rest.get(f"activity?{query}")["total"] == count


def test_an_unknown_record_is_404(rest: Rest) -> None:
    for name in ("01KBDZ3V7W9Q4C2M8T5N6R1XYA", "nothing", "%00", "a" * 500):
        assert rest.error("GET", f"activity/{name}", 404)["code"] == "NOT_FOUND"


def test_the_summary_counts_by_kind(rest: Rest) -> None:
    summary = rest.get("activity/summary?period=1h")
    assert set(summary) == {"period", "total", "by_type", "by_status", "by_intent", "by_server", "top_tools"}
    assert summary["period"] == "1h"
    assert summary["by_server"]["other"] >= 4
    assert summary["by_intent"]["read"] >= 12
    assert {"server": "echo", "tool": "reads", "count": 8} in summary["top_tools"]
    assert rest.get("activity/summary")["period"] == "24h"


def test_the_export_has_every_record_as_lines_of_json(rest: Rest) -> None:
    answer = rest.ask("GET", "activity/export?type=tool_call&tool=reads")
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.headers["content-disposition"] == 'attachment; filename="activity.jsonl"'
    records = [json.loads(line) for line in answer.text.splitlines()]
    assert [record["request_id"] for record in records] == [f"call-{number}" for number in range(12)]


def test_the_export_is_a_table_where_no_cell_is_a_formula(rest: Rest) -> None:
    body = {"name": "echo:reads", "variant": "read", "intent": {"reason": "=1+1", "data_sensitivity": "public"}}
    rest.post("tools/call", body, headers={"X-Request-Id": "formula"})
    answer = rest.ask("GET", "activity/export?format=csv&request_id=formula")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    row = next(csv.DictReader(answer.text.splitlines()))
    assert row["intent_reason"] == "'=1+1"
    assert (row["intent_operation_type"], row["intent_data_sensitivity"]) == ("read", "public")
    assert row["tool_variant"] == "call_tool_read"


def test_an_untouched_log_verifies_and_an_edited_record_is_named(rest: Rest) -> None:
    report = rest.get("activity/verify")
    assert report["ok"] is True
    assert report["problems"] == []
    assert report["records"] == rest.get("activity")["total"]
    victim = rest.get("activity?request_id=call-5")["activities"][0]["id"]
    database = sqlite3.connect(rest.proxy.path.parent / "mcpproxy.db")
    edit = "UPDATE activity SET status = ? WHERE id = ?"
    with database:
        database.execute(edit, ("error", victim))
    try:
        report = rest.get("activity/verify")
        assert report["ok"] is False
        assert victim in [problem["id"] for problem in report["problems"]]
    finally:
        with database:
            database.execute(edit, ("success", victim))
        database.close()


def test_only_one_verification_runs_at_a_time(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slowly(*arguments: Any) -> Any:
        entered.set()
        go_on.wait(20)
        return verify_in(*arguments)

    monkeypatch.setattr(activity_api, "verify_in", slowly)
    first: list[Any] = []
    thread = threading.Thread(target=lambda: first.append(rest.get("activity/verify")))
    thread.start()
    try:
        assert entered.wait(20)
        answer = rest.ask("GET", "activity/verify")
    finally:
        go_on.set()
        thread.join()
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["code"] == "BUSY"
    assert first[0]["ok"] is True
