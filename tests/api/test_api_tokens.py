"""`/tokens`: the life of an agent token, on REST and on /mcp, in its scope and no further."""

import time
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.api.serving import Rest
from tests.calls.proxy import KEY

from mcpproxy.activity.journal import RecordFailed

VERSION = "2025-11-25"
INITIALIZE = {
    "protocolVersion": VERSION,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def create(rest: Rest, name: str, **more: Any) -> Any:
    return rest.post("tokens", {"name": name, **more}, status=201)


class Agent:
    """An MCP client of the handshake era with a token."""

    def __init__(self, rest: Rest, token: str | None, *, header: str = "Authorization") -> None:
        credentials = {} if token is None else {header: f"Bearer {token}" if header == "Authorization" else token}
        self._headers = {"Accept": "application/json, text/event-stream", **credentials}
        self._url = rest.proxy.mcp

    def send(self, method: str, params: Any, *, named: int | None = 1) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if named is None else {"id": named})}
        return httpx2.post(self._url, json=body, headers=self._headers, timeout=20, trust_env=False)

    def connect(self) -> httpx2.Response:
        answer = self.send("initialize", INITIALIZE)
        if answer.status_code == 200:
            self._headers |= {
                "Mcp-Session-Id": answer.headers["mcp-session-id"],
                "Mcp-Protocol-Version": VERSION,
            }
            self.send("notifications/initialized", {}, named=None)
        return answer

    def use(self, tool: str, **arguments: Any) -> Any:
        import json

        answer = self.send("tools/call", {"name": tool, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        text = answer.text
        if answer.headers["content-type"].startswith("text/event-stream"):
            text = next(line[6:] for line in text.splitlines() if line.startswith("data: "))
        return json.loads(text)["result"]


def code(result: Any) -> str | None:
    return result["structuredContent"]["error"]["code"] if result.get("isError") else None


def test_a_token_is_shown_once_and_kept_hashed(rest: Rest) -> None:
    made = create(rest, "ci", servers=["echo"], tools=["echo:re*"], allow=["read", "write"], expires="12h")
    assert made["token"].startswith("mcpp_")
    assert len(made["token"]) == 48
    assert made["last_used_at"] is None
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lifetime == timedelta(hours=12)
    listed = next(token for token in rest.get("tokens")["tokens"] if token["id"] == made["id"])
    assert listed == {key: value for key, value in made.items() if key != "token"}
    for file in rest.proxy.path.parent.rglob("*"):
        if file.is_file():
            assert made["token"].encode() not in file.read_bytes(), file


def test_what_is_not_said_is_little(rest: Rest) -> None:
    made = create(rest, "plain")
    assert (made["servers"], made["tools"], made["allow"]) == (["*"], ["*"], ["read"])
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lifetime == timedelta(days=30)
    assert create(rest, "for ever", expires="never")["expires_at"] is None


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({}, "name", "required"),
        ({"name": ""}, "name", "at least 1"),
        ({"name": "x" * 65}, "name", "at most 64"),
        ({"name": "a\nb"}, "name", "control characters"),
        ({"name": "x", "allow": ["delete"]}, "allow.0", "'read', 'write' or 'destructive'"),
        ({"name": "x", "allow": []}, "allow", "at least 1"),
        ({"name": "x", "servers": []}, "servers", "at least 1"),
        ({"name": "x", "servers": [""]}, "servers.0", "at least 1"),
        ({"name": "x", "tools": ["a" * 201]}, "tools.0", "at most 200"),
        ({"name": "x", "expires": "soon"}, "expires", "30d"),
        ({"name": "x", "expires": "0s"}, "expires", "30d"),
        ({"name": "x", "expires": 30}, "expires", "string"),
        ({"name": "x", "scopes": ["*"]}, "scopes", "there is no such field; use name"),
    ],
)
def test_a_token_out_of_order_is_422(rest: Rest, body: dict[str, Any], field: str, said: str) -> None:
    error = rest.error("POST", "tokens", 422, json=body)
    assert error["details"]["fields"][0]["field"] == field
    assert said in error["message"]


def test_a_name_that_is_taken_is_409_until_it_is_free_again(rest: Rest) -> None:
    made = create(rest, "twice")
    rest.error("POST", "tokens", 409, json={"name": "twice"})
    rest.delete(f"tokens/{made['id']}")
    create(rest, "twice")


def test_its_life_is_on_record_without_the_secret(rest: Rest) -> None:
    made = rest.post("tokens", {"name": "recorded"}, status=201, headers={"X-Request-Id": "token-made"})
    assert rest.delete(f"tokens/{made['id']}", headers={"X-Request-Id": "token-gone"}) == {
        "id": made["id"],
        "name": "recorded",
    }
    for named, change in (("token-made", "token_created"), ("token-gone", "token_revoked")):
        record = rest.get(f"activity?request_id={named}")["activities"][0]
        assert (record["type"], record["source"]) == ("config_change", "api")
        assert record["metadata"]["change"] == change
        assert record["metadata"]["token"]["name"] == "recorded"
    rest.error("DELETE", f"tokens/{made['id']}", 404)


def test_on_rest_a_token_finds_and_calls_within_its_scope(rest: Rest) -> None:
    token = create(rest, "rest", servers=["echo"], tools=["re*", "deletes", "echo:plain"], allow=["read"])["token"]
    seen = {tool["name"] for tool in rest.get("tools", key=token)["tools"]}
    assert seen == {"echo:reads", "echo:deletes", "echo:plain"}
    found = rest.get("tools/search?q=the plain modifies tool&limit=50", key=token)["tools"]
    assert {tool["name"] for tool in found} <= seen
    assert found
    ask = {"name": "echo:reads", "variant": "read"}
    assert rest.post("tools/call", ask, key=token)["content"][0]["text"] == "reads done"
    for name, variant, status, said in (
        ("echo:plain", "write", 403, "ACCESS_DENIED"),
        ("echo:deletes", "destructive", 403, "ACCESS_DENIED"),
        ("echo:modifies", "write", 404, "UNKNOWN_TOOL"),
        ("other:reads", "read", 404, "UNKNOWN_SERVER"),
        ("nobody:reads", "read", 404, "UNKNOWN_SERVER"),
    ):
        body = {"name": name, "variant": variant}
        assert rest.error("POST", "tools/call", status, json=body, key=token)["code"] == said


def test_a_call_is_on_record_with_the_token_that_made_it(rest: Rest) -> None:
    made = create(rest, "accountable")
    for name, status in (("echo:reads", 200), ("echo:deletes", 403)):
        body = {"name": name, "variant": "read"}
        headers = {"X-Request-Id": f"by-{status}"}
        assert rest.ask("POST", "tools/call", json=body, key=made["token"], headers=headers).status_code == status
        records = rest.get(f"activity?request_id=by-{status}")["activities"]
        assert {record["metadata"]["caller"] for record in records} == {f"token:{made['id']}"}
    rest.post("tools/call", {"name": "echo:reads", "variant": "read"}, headers={"X-Request-Id": "by-key"})
    assert "caller" not in rest.get("activity?request_id=by-key")["activities"][0]["metadata"]


def test_what_is_out_of_scope_looks_as_if_it_were_not_there(rest: Rest) -> None:
    token = create(rest, "blind", servers=["echo"], tools=["reads"])["token"]
    hidden = rest.error("POST", "tools/call", 404, json={"name": "other:reads", "variant": "read"}, key=token)
    absent = rest.error("POST", "tools/call", 404, json={"name": "third:reads", "variant": "read"}, key=token)
    assert hidden["message"].replace("other", "third") == absent["message"]


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key"])
def test_on_mcp_a_token_finds_describes_and_calls_within_its_scope(rest: Rest, header: str) -> None:
    token = create(rest, f"mcp {header}", servers=["echo"], tools=["reads", "plain"], allow=["read"])["token"]
    agent = Agent(rest, token, header=header)
    assert agent.connect().status_code == 200
    found = agent.use("retrieve_tools", query="the plain deletes reads tool", limit=50)["structuredContent"]["tools"]
    assert {tool["name"] for tool in found} == {"echo:reads", "echo:plain"}
    assert code(agent.use("describe_tool", name="echo:reads")) is None
    assert code(agent.use("describe_tool", name="echo:deletes")) == "UNKNOWN_TOOL"
    assert code(agent.use("describe_tool", name="other:reads")) == "UNKNOWN_SERVER"
    assert code(agent.use("call_tool_read", name="echo:reads")) is None
    assert code(agent.use("call_tool_write", name="echo:plain")) == "ACCESS_DENIED"
    assert code(agent.use("call_tool_read", name="echo:raw")) == "UNKNOWN_TOOL"
    assert code(agent.use("call_tool_read", name="other:reads")) == "UNKNOWN_SERVER"


def test_a_revoked_token_is_out_at_once_with_its_sessions(rest: Rest) -> None:
    made = create(rest, "short-lived")
    agent = Agent(rest, made["token"])
    agent.connect()
    assert code(agent.use("call_tool_read", name="echo:reads")) is None
    sessions = len(rest.proxy.app.agent.http.sessions)
    rest.delete(f"tokens/{made['id']}")
    assert agent.send("tools/call", {"name": "call_tool_read", "arguments": {"name": "echo:reads"}}).status_code == 401
    rest.error("GET", "tools", 401, key=made["token"])
    assert Agent(rest, made["token"]).connect().status_code == 401
    deadline = time.monotonic() + 10
    while len(rest.proxy.app.agent.http.sessions) != sessions - 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_expired_token_is_401_everywhere(rest: Rest) -> None:
    made = create(rest, "brief", expires="1ms")
    time.sleep(0.01)
    assert "expired" in rest.error("GET", "tools", 401, key=made["token"])["message"]
    assert Agent(rest, made["token"]).connect().status_code == 401
    listed = next(token for token in rest.get("tokens")["tokens"] if token["id"] == made["id"])
    assert listed["expired"] is True
    assert listed["last_used_at"] is None


def test_the_session_of_one_token_is_not_there_for_another(rest: Rest) -> None:
    one, other = (Agent(rest, create(rest, f"session {number}")["token"]) for number in (1, 2))
    one.connect()
    other._headers |= {name: one._headers[name] for name in ("Mcp-Session-Id", "Mcp-Protocol-Version")}
    assert other.send("tools/list", {}).status_code == 404
    assert one.send("tools/list", {}).status_code == 200


def test_the_last_use_is_known_to_the_minute(rest: Rest) -> None:
    made = create(rest, "used")
    rest.get("tools", key=made["token"])
    listed = next(token for token in rest.get("tokens")["tokens"] if token["id"] == made["id"])
    used = datetime.fromisoformat(listed["last_used_at"])
    assert used.second == used.microsecond == 0


def test_where_mcp_needs_a_key_a_token_does(rest: Rest) -> None:
    token = create(rest, "needed")["token"]
    rest.patch("config", {"require_mcp_auth": True})
    try:
        assert Agent(rest, None).connect().status_code == 401
        assert Agent(rest, token).connect().status_code == 200
        assert Agent(rest, KEY).connect().status_code == 200
    finally:
        rest.patch("config", {"require_mcp_auth": None})
    assert Agent(rest, None).connect().status_code == 200
    assert Agent(rest, "mcpp_unknown").connect().status_code == 401


def test_a_token_that_cannot_be_put_on_record_is_not_made(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*records: object) -> None:
        raise RecordFailed("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(rest.proxy.app.journal, "write", fail)
        assert "disk is full" in rest.error("POST", "tokens", 503, json={"name": "unrecorded"})["message"]
    assert "unrecorded" not in [token["name"] for token in rest.get("tokens")["tokens"]]
