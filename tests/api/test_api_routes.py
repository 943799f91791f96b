"""Every route there is, against everybody who should not get in."""

from typing import Any

import pytest
from tests.api.serving import PREFIX, Rest
from tests.calls.proxy import KEY

CHANGING = ("POST", "PUT", "PATCH", "DELETE")
OPEN = {"/healthz", "/readyz", "/oauth/callback", "/mcp"}
"""What answers without a key: the last where `require_mcp_auth` is off."""
ROUTES = [
    ("GET", "status"),
    ("GET", "servers"),
    ("POST", "servers"),
    ("GET", "servers/{name}"),
    ("PATCH", "servers/{name}"),
    ("DELETE", "servers/{name}"),
    ("POST", "servers/{name}/enable"),
    ("POST", "servers/{name}/disable"),
    ("POST", "servers/{name}/restart"),
    ("POST", "servers/{name}/quarantine"),
    ("POST", "servers/{name}/approve"),
    ("POST", "servers/{name}/login"),
    ("GET", "servers/{name}/tools"),
    ("GET", "servers/{name}/logs"),
    ("GET", "tools"),
    ("GET", "tools/search"),
    ("POST", "tools/call"),
    ("GET", "activity"),
    ("GET", "activity/{id}"),
    ("GET", "activity/summary"),
    ("GET", "activity/export"),
    ("GET", "activity/verify"),
    ("GET", "tokens"),
    ("POST", "tokens"),
    ("DELETE", "tokens/{id}"),
    ("GET", "config"),
    ("PATCH", "config"),
    ("POST", "config/validate"),
    ("GET", "events"),
]
BEYOND = [
    ("GET", "tools/waiting"),
    ("POST", "tools/approve"),
    ("POST", "tools/reject"),
    ("GET", "tools/explain"),
    ("POST", "dashboard/login"),
    ("POST", "servers/{name}/logout"),
]
"""Decisions about tools, the reasons of a search, login links and logouts, which the contract leaves to command line
and dashboard."""
UNLISTED = [("GET", "/metrics"), ("GET", f"{PREFIX}/openapi.json"), ("GET", f"{PREFIX}/docs")]
LISTED = [*ROUTES, *BEYOND]
EVERY = [*LISTED, *UNLISTED]
FOR_TOKENS = {("GET", "tools"), ("GET", "tools/search"), ("POST", "tools/call")}
OUTSIDE = [("GET", path) for path in sorted(OPEN)]


def concrete(path: str) -> str:
    return path.replace("{name}", "echo").replace("{id}", "01KBDZ3V7W9Q4C2M8T5N6R1XYA")


def test_the_document_lists_the_routes_of_the_contract_and_no_other(rest: Rest) -> None:
    document = rest.ask("GET", "openapi.json").json()
    listed = {
        (method.upper(), path.removeprefix(f"{PREFIX}/")) for path, item in document["paths"].items() for method in item
    }
    assert listed == set(LISTED)


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_a_route_without_credentials_answers_401_and_nothing_else(rest: Rest, method: str, path: str) -> None:
    body: Any = {} if method in CHANGING else None
    error = rest.error(method, concrete(path), 401, key=None, json=body)
    assert error["code"] == "UNAUTHORIZED"


@pytest.mark.parametrize("key", ["", "wrong", KEY[:-1], KEY + "0", "mcpp_" + "a" * 43, "é"])
def test_a_wrong_key_is_401_everywhere_and_never_anonymous(rest: Rest, key: str) -> None:
    for method, path in [*EVERY, ("POST", "/mcp")]:
        for header in ({"X-API-Key": key.encode()}, {"Authorization": f"Bearer {key}".strip().encode()}):
            answer = rest.ask(method, concrete(path), key=None, headers=header)
            assert answer.status_code == 401, (method, path, header)
            assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v2/status", "/nothing", "/metrics/", "/mcp/x", "/healthz/"])
def test_nothing_else_answers_without_a_key(rest: Rest, path: str) -> None:
    assert rest.ask("GET", path, key=None).status_code in (401, 404)


def test_what_is_open_answers_without_a_key(rest: Rest) -> None:
    assert rest.ask("GET", "/healthz", key=None).json()["status"] == "ok"
    assert rest.ask("GET", "/readyz", key=None).status_code == 200
    assert rest.ask("GET", "/oauth/callback", key=None).status_code == 400
    assert rest.ask("POST", "/mcp", key=None, json={}).status_code == 400


@pytest.mark.parametrize(("method", "path"), [*EVERY, *OUTSIDE])
def test_a_foreign_host_or_origin_is_turned_away_even_with_the_key(rest: Rest, method: str, path: str) -> None:
    where = concrete(path)
    refused = rest.ask(method, where, headers={"Host": "evil.example"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (421, "WRONG_HOST")
    for origin in ("http://evil.example", "null", rest.url.replace("127.0.0.1", "127.0.0.2")):
        assert rest.ask(method, where, headers={"Origin": origin}).status_code == 403, origin


@pytest.mark.parametrize("foreign", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_who_is_turned_away_at_the_door_still_learns_the_id_of_the_request(rest: Rest, foreign: dict[str, str]) -> None:
    named = rest.ask("GET", "/api/v1/status", headers={**foreign, "X-Request-Id": "mine-1"})
    assert (named.json()["request_id"], named.headers["X-Request-Id"]) == ("mine-1", "mine-1")
    unnamed = rest.ask("GET", "/api/v1/status", headers=foreign)
    assert unnamed.json()["request_id"] == unnamed.headers["X-Request-Id"] != ""


@pytest.mark.parametrize(("method", "path"), [route for route in LISTED if route[0] in CHANGING])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "x"])
def test_a_change_that_is_not_json_is_415(rest: Rest, method: str, path: str, kind: str) -> None:
    for body in (b'{"name": "x"}', b""):
        if kind or body:
            error = rest.error(method, concrete(path), 415, content=body, headers={"Content-Type": kind})
            assert "application/json" in error["message"]


def test_no_answer_opens_the_door_to_other_origins(rest: Rest) -> None:
    for method, path in (("GET", "status"), ("OPTIONS", "status"), ("GET", "/metrics"), ("GET", "nothing")):
        headers = rest.ask(method, path, headers={"Origin": rest.url}).headers
        assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(("method", "path"), [route for route in EVERY if route not in FOR_TOKENS])
def test_a_token_is_for_finding_and_calling_tools_only(rest: Rest, method: str, path: str) -> None:
    token = rest.post("tokens", {"name": f"{method} {path}", "allow": ["read", "write", "destructive"]}, status=201)
    body: Any = {} if method in CHANGING else None
    error = rest.error(method, concrete(path), 403, key=token["token"], json=body)
    assert error["code"] == "FORBIDDEN"


def test_every_operation_says_what_it_may_answer(rest: Rest) -> None:
    document = rest.ask("GET", "openapi.json").json()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert {"401", "403", "404", "422", "429"} <= set(operation["responses"]), (path, method)
            assert operation["description"], (path, method)
            if method.upper() in CHANGING:
                assert {"408", "413", "415"} <= set(operation["responses"]), (path, method)
