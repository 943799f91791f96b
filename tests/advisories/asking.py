"""How do strangers, agents and the operator ask a running proxy? By HTTP alone, each with what it has."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from tests.fuzz.raw_http import RawHttp
from tests.journeys.support import KEY, Proxy

from mcpproxy.web.app import PAGES

API = "/api/v1"
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
ACCEPT = "application/json, text/event-stream"
JSON = {"Content-Type": "application/json"}
FORM = "application/x-www-form-urlencoded"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "advisories", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Route = tuple[str, str]


class Asking:
    """Whoever asks; by default the operator."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self._client = httpx2.Client(base_url=f"http://127.0.0.1:{proxy.port}", timeout=60, trust_env=False)

    def ask(self, method: str, path: str, *, key: str | None = KEY, **more: Any) -> httpx2.Response:
        """One request, with a key or without."""
        given = more.pop("headers", {})
        pairs = given.items() if isinstance(given, dict) else given
        headers = [*pairs, *([("X-API-Key", key)] if key is not None else [])]
        return self._client.request(method, path, headers=headers, **more)

    def post_raw(self, key: str | None, headers: dict[str, str], content: str) -> int:
        """Post to `/mcp` with headers as they are, white space and all; gives the status."""
        head = {**headers, **({"X-API-Key": key} if key is not None else {})}
        pairs = [(name.encode(), value.encode()) for name, value in head.items()]
        return RawHttp(self.proxy.url).post("/mcp", pairs, content.encode()).status

    def api(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        """The data of a REST call that must end so."""
        answer = self.ask(method, f"{API}/{path}", **more)
        assert answer.status_code == status, answer.text
        return answer.json().get("data")

    def token(self, name: str, **scope: Any) -> str:
        """A new agent token."""
        made: str = self.api("POST", "tokens", 201, json={"name": name, **scope})["token"]
        return made

    def agent(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        """Call a built-in tool as an agent of 2026-07-28; gives the whole answer."""
        params = {"name": tool, "arguments": arguments, "_meta": META}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool, "Accept": ACCEPT}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer: dict[str, Any] = self.ask("POST", "/mcp", key=key, headers=headers, json=body).json()
        return answer

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """The structured content of a read."""
        return self.agent("call_tool_read", {"name": name, "args": arguments})["result"]["structuredContent"]

    def routes(self) -> list[Route]:
        """Every route of the REST face, as it describes itself, with names that nothing has."""
        listed = self.ask("GET", f"{API}/openapi.json").json()["paths"]
        return [(method.upper(), filled(path)) for path, item in listed.items() for method in item]


def filled(path: str) -> str:
    """A path with names that nothing has."""
    return path.replace("{name}", "nobody").replace("{id}", "01KBDZ3V7W9Q4C2M8T5N6R1XYA")


def pages() -> list[Route]:
    """Every route of the dashboard."""
    routes = [route for page in PAGES for route in page.routes]
    return sorted({(method, route.path) for route in routes for method in route.methods or () if method != "HEAD"})


def initialize(asking: Asking, key: str | None) -> str:
    """Open a session of the handshake era; gives its id."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = asking.ask("POST", "/mcp", key=key, headers={"Accept": ACCEPT}, json=body)
    assert answer.status_code == 200
    return str(answer.headers["mcp-session-id"])


def in_session(session: str, method: str = "tools/list") -> dict[str, Any]:
    """What `ask` needs for a request in a session."""
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25", "Accept": ACCEPT, **JSON}
    return {"headers": headers, "content": json.dumps({"jsonrpc": "2.0", "id": 1, "method": method})}
