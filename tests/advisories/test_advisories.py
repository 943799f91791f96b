"""What brought others down, tried on us: one test for each row of the lessons from the advisories of our peers.

Each runs against a real `mcpproxy serve`. The rooms have tests of their own for the details.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import aiohttp
import pytest
from tests.advisories.asking import ACCEPT, API, CHANGING, FORM, JSON, META, Asking, in_session, initialize, pages
from tests.advisories.hostile_login import hostile_login
from tests.advisories.malformed import HTTP_GARBAGE, LINES, bodies
from tests.fuzz import shifty_server
from tests.journeys.support import CONSOLE, KEY, PATIENCE, Proxy, environment, eventually, run
from tests.support.children import command

pytestmark = pytest.mark.xdist_group("advisories")

ELSEWHERE = {
    "request ids that collide across clients": (
        "tests.faults.test_faults_client_ids",
        "test_two_hundred_clients_with_equal_ids_each_get_their_own_answer",
    ),
    "secrets in lists, logs and records": (
        "tests.advisories.test_advisories_secrets",
        "test_no_surface_shows_a_secret",
    ),
}
"""The rows whose end-to-end test stands in a module of its own."""
HUNG = 500
SHIFTY = Path(shifty_server.__file__)
HINT = "Use retrieve_tools to find its exact name."


def bad(*tools: str, **options: Any) -> dict[str, Any]:
    """A scripted server with these tools."""
    program, *args = command(pages=[[{"name": tool, "inputSchema": {"type": "object"}} for tool in tools]], **options)
    return {"command": program, "args": args}


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server that hangs was asked."""
    return tmp_path_factory.mktemp("heard") / "lines"


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory, heard: Path) -> Iterator[Asking]:
    servers = {"good": bad("echo", "about"), "stuck": bad("never", "echo", record=str(heard))}
    with Proxy(tmp_path_factory.mktemp("advisories"), servers, trusted_hosts=["proxy.example"]) as proxy:
        proxy.start().await_ready(*servers)
        yield Asking(proxy)


def test_oauth_metadata_is_never_taken_for_a_command(operator: Asking, tmp_path: Path) -> None:
    """mcp-remote: the authorization endpoint of a server went to a shell."""
    owned, proxy = tmp_path / "owned", operator.proxy
    endpoints = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        f"$(touch {owned})",
        f"https://as.example/$(touch${{IFS}}{owned})",
        f"`touch {owned}`",
        f"a:$(touch {owned})?response_type=code",
        "--flag",
        "-oProxyCommand=id",
    ]
    children = {child.pid for child in proxy.children()}
    with hostile_login() as server:
        server.endpoint = endpoints[0]
        operator.api("POST", "servers", 201, json={"name": "hostile", "url": f"{server.origin}/mcp"})
        eventually(lambda: operator.api("GET", "servers/hostile")["state"] == "needs_login", "it wants a login")
        for server.endpoint in endpoints:
            refused = operator.ask("POST", f"{API}/servers/hostile/login")
            assert refused.status_code == 409, server.endpoint
            assert "login_url" not in operator.api("GET", "servers/hostile")
        asked = run(proxy.home, "upstream", "login", "hostile", "--config", proxy.config, "--data-dir", proxy.data)
        assert asked.returncode == 1 and "Open this link" not in asked.stderr
        operator.api("DELETE", "servers/hostile")
    assert {child.pid for child in proxy.children()} == children
    assert not owned.exists()


def test_no_route_that_changes_something_is_open_and_looking_never_spawns(operator: Asking, tmp_path: Path) -> None:
    """Inspector, MCPJam, LiteLLM: whoever reached the port could have any command started."""
    owned, proxy = tmp_path / "owned", operator.proxy
    entry = {"name": "owned", "command": "touch", "args": [str(owned)]}
    for method, path in [route for route in operator.routes() if route[0] in CHANGING]:
        told: dict[str, Any] = {"json": entry}
        assert operator.ask(method, path, key=None, **told).status_code == 401, path
        for origin in ("http://evil.example", "null", "http://localhost:1"):
            assert operator.ask(method, path, headers={"Origin": origin}, **told).status_code == 403, path
        plain = operator.ask(method, path, headers={"Content-Type": "text/plain"}, content=json.dumps(entry))
        assert plain.status_code == 415, path
    for method, path in [route for route in pages() if route[0] in CHANGING and route[1] != "/ui/login"]:
        form = {"Content-Type": FORM}
        assert operator.ask(method, path, headers=form, content="name=owned&command_line=touch").status_code == 303
        evil = {**form, "Origin": "http://evil.example"}
        assert operator.ask(method, path, headers=evil, content="").status_code == 403
    stranger = operator.agent("upstream_servers", {"operation": "add", "name": "owned", "server": entry})
    assert stranger["error"]["code"] == -32602  # there is no such tool for whoever has no key

    operator.api("POST", "config/validate", json={"mcpServers": [entry]})
    operator.agent("upstream_servers", {"operation": "add", "name": "owned", "server": entry}, key=KEY)
    for action in ("restart", "enable", "quarantine"):
        operator.api("POST", f"servers/owned/{action}")
    for arguments in (["doctor"], ["config", "validate"], ["upstream", "list"], ["tools", "list"]):
        run(proxy.home, *arguments, "--config", proxy.config, "--data-dir", proxy.data)
    assert operator.api("GET", "servers/owned")["state"] == "quarantined"
    assert not owned.exists()
    operator.api("POST", "servers/owned/approve")
    eventually(owned.exists, "what an operator approved is started")
    operator.api("DELETE", "servers/owned")


def test_no_page_of_another_name_gets_through(operator: Asking) -> None:
    """Both SDKs, FastMCP: DNS rebinding made a visited page a local client."""
    ways = [("POST", "/mcp"), ("GET", f"{API}/status"), ("GET", "/ui/"), ("GET", f"{API}/events"), ("GET", "/ui/live")]
    names = ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "evil.example:80", "[::2]"]
    for method, path in ways:
        for name in names:
            refused = operator.ask(method, path, headers={"Host": name, "Accept": "application/json"})
            assert refused.status_code == 421, (path, name)
            assert "mcpproxy" not in refused.headers.get("set-cookie", "")
    for name in (f"127.0.0.1:{operator.proxy.port}", "localhost", "proxy.example", "proxy.example:443"):
        assert operator.ask("GET", f"{API}/status", headers={"Host": name}).status_code == 200
    forwarded = {"Host": "evil.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
    assert operator.ask("GET", f"{API}/status", headers=forwarded).status_code == 421


def test_a_session_belongs_to_whoever_opened_it(operator: Asking) -> None:
    """A session id alone was enough to speak in another's name."""
    owner, thief = operator.token("owner"), operator.token("thief")
    session = initialize(operator, owner)
    for key in (thief, KEY, None):
        for method in ("POST", "GET", "DELETE"):
            assert operator.ask(method, "/mcp", key=key, **in_session(session)).status_code == 404, method
        for spelled in (f"{session} ", f" \t{session}\t"):
            assert operator.post_raw(key, **in_session(spelled)) == 404, spelled
        mine = initialize(operator, key)
        for order in ((session, mine), (mine, session)):
            both = [*JSON.items(), ("Accept", ACCEPT), *(("Mcp-Session-Id", one) for one in order)]
            request = {**in_session(mine), "headers": both}
            assert operator.ask("POST", "/mcp", key=key, **request).status_code == 400
    assert operator.ask("POST", "/mcp", key=owner, **in_session(session)).status_code == 200
    ids = {initialize(operator, owner) for _ in range(64)}
    assert len(ids) == 64
    # 32 hexadecimal digits, none of which is the same in all of them: nothing in a name is fixed.
    assert all(len(one) == 32 and len(set(place)) > 1 for one in ids for place in zip(*ids, strict=True))


def test_an_unknown_path_serves_nothing_and_every_route_asks_who_it_is(operator: Asking) -> None:
    """ContextForge: an unknown server id served the tools of all of them."""
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    for path in ("/mcp/good", "/mcp/nobody", "/servers/nobody/mcp", "/good/mcp", "/mcp/../mcp/x", "/sse", "/message"):
        answer = operator.ask("POST", path, headers={"Accept": ACCEPT}, json=listing)
        assert answer.status_code == 404 and "echo" not in answer.text, path
    blind = operator.token("blind", servers=["nobody"])
    found = operator.agent("retrieve_tools", {"query": "echo"}, blind)["result"]["structuredContent"]
    assert found["tools"] == [] and operator.api("GET", "tools", key=blind)["total"] == 0

    token = operator.token("any", allow=["read", "write", "destructive"])
    for_tokens = {("GET", f"{API}/tools"), ("GET", f"{API}/tools/search"), ("POST", f"{API}/tools/call")}
    for_all = {("GET", "/healthz"), ("GET", "/readyz")}
    unlisted = {("GET", "/metrics"), ("GET", f"{API}/docs"), ("GET", f"{API}/openapi.json")}
    for method, path in {*operator.routes(), *unlisted, *for_all}:
        verb = "HEAD" if path.endswith("/events") else method  # a stream would not end
        body: Any = {} if method in CHANGING else None
        status = {
            who: operator.ask(verb, path, key=key, json=body).status_code
            for who, key in {"nobody": None, "wrong": "x" * 64, "token": token, "key": KEY}.items()
        }
        open_to_all, for_agents = (method, path) in for_all, (method, path) in for_tokens
        assert (status["nobody"] == 401, status["wrong"] == 401) == (not open_to_all, not open_to_all), path
        assert (status["token"] == 403) == (not open_to_all and not for_agents), (path, status)
        assert status["key"] not in (401, 403), path
    for method, path in pages():
        for key in (None, token, KEY):  # a browser comes with its own session, and with nothing else
            kind = {"Content-Type": FORM} if method == "POST" else {}
            status_code = operator.ask(method, path, key=key, headers=kind).status_code
            assert status_code == (303 if path != "/ui/login" else status_code), path


def test_five_hundred_hung_calls_leave_everything_else_answering(operator: Asking, heard: Path) -> None:
    """ContextForge: a database connection was held for as long as an upstream took."""
    proxy = operator.proxy

    def hung() -> int:
        return heard.read_text().count('"tools/call"') if heard.exists() else 0

    async def meanwhile() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            calls = [asyncio.create_task(_hang(session, proxy.url)) for _ in range(HUNG)]
            await asyncio.to_thread(eventually, lambda: hung() >= HUNG, "all of them hang")
            for path in ("status", "servers", "tools/search?q=echo", "activity", "activity/summary", "config"):
                await asyncio.to_thread(operator.api, "GET", path)
            answer = await asyncio.to_thread(operator.call, "good:echo", {"still": "here"})
            assert answer == {"still": "here"}
            assert not any(call.done() for call in calls)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)

    asyncio.run(meanwhile())
    ended = "activity?status=interrupted&tool=stuck:never&limit=1"
    eventually(lambda: operator.api("GET", ended)["total"] == HUNG, "each of them is on record")


async def _hang(session: aiohttp.ClientSession, url: str) -> None:
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "call_tool_read",
        "Accept": ACCEPT,
    }
    params = {"name": "call_tool_read", "arguments": {"name": "stuck:never"}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with session.post(url, json=body, headers=headers) as response:
        await response.read()


def test_no_input_ends_the_process(operator: Asking, tmp_path: Path) -> None:
    """Several: one malformed message, and the whole gateway was gone."""
    proxy = operator.proxy
    pid = proxy.process.pid
    for body in bodies():
        for path in ("/mcp", f"{API}/tools/call", f"{API}/servers", f"{API}/config/validate"):
            headers = {"Content-Type": "application/json", "Accept": ACCEPT}
            assert operator.ask("POST", path, headers=headers, content=body).status_code < 500, (path, body[:200])
    for garbage in HTTP_GARBAGE:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    assert operator.call("good:echo", {"still": "here"}) == {"still": "here"}
    assert proxy.process.poll() is None and proxy.process.pid == pid
    assert "Traceback" not in proxy.stderr

    other = Proxy(tmp_path)
    options = ["serve", "--stdio", "--config", str(other.config), "--data-dir", str(other.data)]
    with subprocess.Popen(
        [CONSOLE, *options], env=environment(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdin is not None and agent.stdout is not None
        threading.Thread(target=_say, args=(agent.stdin, LINES)).start()
        late = threading.Timer(PATIENCE, agent.kill)
        late.start()
        assert "last" in (json.loads(line)["id"] for line in agent.stdout)
        late.cancel()
        agent.stdin.close()
        assert agent.wait(PATIENCE) == 0


def _say(pipe: IO[bytes], lines: list[bytes]) -> None:
    pipe.writelines(lines)
    pipe.flush()


def test_names_that_join_to_the_same_stay_apart(operator: Asking, tmp_path: Path) -> None:
    """Several: `a_b` + `c` and `a` + `b_c` were one name, so one server answered for another."""
    joined = {"a_b": ["c"], "a": ["b_c", "b:c", "b__c"], "a__b": ["c"]}
    for server, tools in joined.items():
        file = tmp_path / f"{server}.json"
        file.write_text(json.dumps([{"name": tool, "inputSchema": {"type": "object"}} for tool in tools]))
        entry = {"name": server, "command": sys.executable, "args": ["-I", "-S", str(SHIFTY), str(file)]}
        operator.api("POST", "servers", 201, json=entry)
    operator.proxy.await_ready(*joined)
    operator.api("PATCH", "servers/a", json={"disabled_tools": ["b_c"]})
    operator.proxy.await_ready("a", times=2)
    narrow = operator.token("narrow", tools=["a_b:*"])
    for server, tool in ((server, tool) for server, tools in joined.items() for tool in tools):
        asked = {"name": f"{server}:{tool}"}
        answer = operator.agent("call_tool_read", asked)["result"]
        off = (server, tool) == ("a", "b_c")
        wanted = f"Tool 'a:b_c' not found. {HINT}" if off else f"called {tool} of {server}"
        assert answer["content"][0]["text"] == wanted
        seen = operator.agent("describe_tool", asked, narrow)["result"]["structuredContent"]
        assert ("tools" in seen) == (server == "a_b"), asked
    for server in joined:
        operator.api("DELETE", f"servers/{server}")


def test_every_other_row_has_its_test() -> None:
    for module, name in ELSEWHERE.values():
        assert callable(getattr(importlib.import_module(module), name))
