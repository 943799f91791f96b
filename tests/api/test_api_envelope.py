"""What every answer has in common: the envelope, the id, and a clear word on what is wrong."""

import json
import socket
from urllib.parse import urlsplit

import pytest
from tests.api.serving import Rest
from tests.calls.proxy import KEY

from mcpproxy import asgi
from mcpproxy.api import activity, tools
from mcpproxy.policy.verdict import Refusal
from mcpproxy.storage.errors import StorageLocked


@pytest.mark.parametrize("named", ["a", "A.b_c-9", "x" * 128, "01KBDZ3V7W9Q4C2M8T5N6R1XYA"])
def test_a_request_id_in_order_is_echoed(rest: Rest, named: str) -> None:
    for path in ("status", "nothing", "activity?limit=0"):
        answer = rest.ask("GET", path, headers={"X-Request-Id": named})
        assert answer.headers["x-request-id"] == answer.json()["request_id"] == named


@pytest.mark.parametrize("named", ["", "x" * 129, "a b", "a/b", "é", 'a"b', "a;b"])
def test_a_request_id_out_of_order_is_replaced(rest: Rest, named: str) -> None:
    answer = rest.ask("GET", "status", headers={"X-Request-Id": named.encode()})
    assert answer.status_code == 200
    assert answer.headers["x-request-id"] == answer.json()["request_id"] != named
    assert len(answer.json()["request_id"]) == 26


def test_the_request_id_stands_on_the_records_of_a_call(rest: Rest) -> None:
    named = "my-own-id.1"
    rest.post("tools/call", {"name": "echo:reads", "variant": "read"}, headers={"X-Request-Id": named})
    found = rest.get(f"activity?request_id={named}")["activities"]
    assert [(record["type"], record["source"]) for record in found] == [("tool_call", "api")]


def test_an_unknown_path_is_404_and_says_where_to_look(rest: Rest) -> None:
    error = rest.error("GET", "sevrers", 404)
    assert error["code"] == "NOT_FOUND"
    assert "/api/v1/docs" in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "status", "GET, HEAD, OPTIONS"),
        ("PUT", "servers", "GET, HEAD, OPTIONS, POST"),
        ("POST", "servers/echo", "DELETE, GET, HEAD, OPTIONS, PATCH"),
        ("GET", "servers/echo/enable", "OPTIONS, POST"),
        ("GET", "tools/call", "OPTIONS, POST"),
        ("POST", "activity/summary", "GET, HEAD, OPTIONS"),
        ("TRACE", "status", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_wrong_method_is_405_and_names_the_right_ones(rest: Rest, method: str, path: str, allow: str) -> None:
    answer = rest.ask(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allow
    assert answer.json()["error"]["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("path", ["status", "servers/echo", "activity", "openapi.json", "/metrics", "events"])
def test_head_answers_like_get_without_a_body(rest: Rest, path: str) -> None:
    answer = rest.ask("HEAD", path)
    assert answer.status_code == 200
    assert answer.content == b""
    assert rest.ask("HEAD", f"{path}/x/y/z").status_code == 404


def test_options_names_the_methods(rest: Rest) -> None:
    answer = rest.ask("OPTIONS", "servers/echo")
    assert (answer.status_code, answer.headers["allow"]) == (204, "DELETE, GET, HEAD, OPTIONS, PATCH")
    assert rest.ask("OPTIONS", "nothing").status_code == 404


@pytest.mark.parametrize(
    ("path", "field", "said"),
    [
        ("activity?limit=0", "limit", "a whole number from 1 to 1000"),
        ("activity?limit=1001", "limit", "a whole number from 1 to 1000"),
        ("activity?limit=ten", "limit", "a whole number from 1 to 1000"),
        ("activity?type=tool_cal", "type", "tool_call, internal_tool_call"),
        ("activity?status=ok", "status", "success, error, blocked, warning, rejected, interrupted"),
        ("activity?intent_type=delete", "intent_type", "read, write, destructive"),
        ("activity?start_time=yesterday", "start_time", "RFC 3339"),
        ("activity?cursor=abc", "cursor", "next_cursor"),
        ("activity?sever=echo", "sever", "server"),
        ("activity?server=a&server=b", "server", "more than once"),
        ("activity/summary?period=2d", "period", "1h, 24h, 7d, 30d"),
        ("activity/export?format=xml", "format", "jsonl, csv"),
        ("servers/echo/logs?limit=0", "limit", "greater than or equal to 1"),
        ("tools/search", "q", "required"),
        ("tools/search?q=", "q", "at least 1 character"),
        ("tools/search?q=a&limit=101", "limit", "a whole number from 1 to 100"),
        ("status?verbose=1", "verbose", "no such parameter"),
        ("/metrics?x=1", "x", "no such parameter"),
    ],
)
def test_a_bad_parameter_is_422_that_names_it_and_what_is_allowed(rest: Rest, path: str, field: str, said: str) -> None:
    error = rest.error("GET", path, 422)
    assert error["code"] == "INVALID"
    assert error["message"].startswith(f"{field}: ")
    assert said in error["message"]
    assert error["details"]["fields"][0]["field"] == field


@pytest.mark.parametrize(
    ("path", "body", "field", "allowed"),
    [
        ("tools/call", {"name": "a:b"}, "variant", ["read", "write", "destructive"]),
        ("tools/call", {"name": "a:b", "variant": "delete"}, "variant", ["read", "write", "destructive"]),
        (
            "tools/call",
            {"name": "a:b", "variant": "read", "args": 1},
            "args",
            ["name", "variant", "arguments", "intent"],
        ),
        ("tokens", {"name": "x", "scopes": 1}, "scopes", ["name", "servers", "tools", "allow", "expires"]),
    ],
)
def test_a_bad_body_is_422_that_names_the_field_and_what_is_allowed(
    rest: Rest, path: str, body: dict[str, object], field: str, allowed: list[str]
) -> None:
    error = rest.error("POST", path, 422, json=body)
    assert error["message"].startswith(f"{field}: ") and ", ".join(allowed) in error["message"]
    assert error["details"]["fields"][0] == {
        "field": field,
        "message": error["message"][len(field) + 2 :],
        "allowed": allowed,
    }


@pytest.mark.parametrize(
    "body", [b"{", b"", b"[]", b'"text"', b"\xff", b"{" * 5000, b'{"a":' * 5000 + b"1" + b"}" * 5000]
)
@pytest.mark.parametrize("path", ["servers", "tokens", "tools/call", "config/validate"])
def test_a_body_that_is_no_object_is_422(rest: Rest, path: str, body: bytes) -> None:
    error = rest.error("POST", path, 422, content=body, headers={"Content-Type": "application/json"})
    assert error["code"] == "INVALID"


@pytest.mark.parametrize("text", ['"\\ud800"', "NaN", "1e400", "Infinity", '"\\u0000"', "1" * 5000])
def test_odd_json_values_end_in_a_clear_answer(rest: Rest, text: str) -> None:
    for path, body in (
        ("servers", f'{{"name": {text}}}'),
        ("servers", f'{{"name": "x", "command": {text}}}'),
        ("tokens", f'{{"name": {text}}}'),
        ("tokens", f'{{"name": "t", "servers": [{text}]}}'),
        ("tools/call", f'{{"name": {text}, "variant": "read"}}'),
        ("config/validate", f'{{"api_key": {text}}}'),
    ):
        answer = rest.ask("POST", path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (200, 404, 422), (path, answer.text)


def test_a_body_over_the_limit_is_413(rest: Rest) -> None:
    rest.patch("config", {"max_request_bytes": 1000})
    try:
        error = rest.error("POST", "tokens", 413, json={"name": "x" * 2000})
        assert "max_request_bytes (1000 bytes)" in error["message"]
    finally:
        rest.patch("config", {"max_request_bytes": None})


def test_the_charset_of_json_may_be_named(rest: Rest) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert rest.ask("POST", "config/validate", content=b"{}", headers=headers).status_code == 200


def test_answers_are_kept_by_nobody_and_taken_for_nothing_else(rest: Rest) -> None:
    headers = rest.ask("GET", "status").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_the_docs_page_fetches_nothing_and_runs_nothing(rest: Rest) -> None:
    answer = rest.ask("GET", "docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "<script" not in answer.text
    assert "http://" not in answer.text.replace("http://127.0.0.1:8080", "")
    assert "https://" not in answer.text
    assert "GET, HEAD" not in answer.text
    for path in ("/api/v1/servers/{name}/quarantine", "/api/v1/activity/verify"):
        assert path in answer.text


def test_raw_http_nonsense_does_not_hurt(rest: Rest) -> None:
    where = urlsplit(rest.url)
    for head in (
        b"GET /api/v1/status HTTP/1.1\r\n\r\n",
        b"GET /api/v1/%ff%fe HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: " + KEY.encode() + b"\r\n\r\n",
        b"GET /api/v1/activity?q=%ff%00 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: " + KEY.encode() + b"\r\n\r\n",
        b"BREW /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ):
        with socket.create_connection((where.hostname or "", where.port or 0), timeout=5) as connection:
            connection.sendall(head)
            status = int(connection.recv(65536).split()[1])
            assert 400 <= status < 500
    assert rest.get("status")["version"]


def test_a_large_list_of_problems_stays_short(rest: Rest) -> None:
    body = {"name": "x", "servers": [1] * 100}
    error = rest.error("POST", "tokens", 422, json=body)
    assert len(json.dumps(error)) < 5000


def test_a_body_that_does_not_come_is_408(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.1)
    where = urlsplit(rest.url)
    head = f"POST /api/v1/tokens HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {KEY}\r\nContent-Length: 9\r\n\r\n"
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as connection:
        connection.sendall(head.encode())
        answer = b""
        while b'"code":"TOO_SLOW"' not in answer:
            piece = connection.recv(65536)
            assert piece, answer
            answer += piece
    assert answer.startswith(b"HTTP/1.1 408")


def test_a_database_that_does_not_answer_is_503(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*arguments: object) -> None:
        raise StorageLocked("The database is locked by another process.")

    monkeypatch.setattr(activity, "list_records", locked)
    error = rest.error("GET", "activity", 503)
    assert (error["code"], error["message"]) == ("UNAVAILABLE", "The database is locked by another process.")


def test_a_fault_of_ours_is_500_and_tells_nothing(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("what only we should know")

    monkeypatch.setattr(activity, "list_records", broken)
    answer = rest.ask("GET", "activity")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "INTERNAL"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert "only we" not in answer.text


def test_an_overloaded_server_is_429_with_a_time_to_come_back() -> None:
    error = tools._refused(Refusal("UPSTREAM_UNAVAILABLE", "Server 'x' is overloaded.", {"shed": True}))
    assert (error.status, error.headers) == (429, {"Retry-After": "1"})
