"""Can a newcomer start it and an agent connect? The first five minutes, with the official client."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from tests.journeys.support import CONSOLE, PATIENCE, Proxy, environment, eventually, marked, tiny

pytestmark = pytest.mark.xdist_group("journey-session")

BUILT_IN = {
    "retrieve_tools",
    "describe_tool",
    "call_tool_read",
    "call_tool_write",
    "call_tool_destructive",
    "read_cache",
}
ERAS = [("legacy", "2025-11-25"), ("auto", "2026-07-28")]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """What `make run` starts, on a free port."""
    with Proxy(tmp_path_factory.mktemp("home")) as proxy:
        proxy.launch("--demo", "--listen", f"127.0.0.1:{proxy.port}")
        yield proxy


async def version_and_tools(client: Client) -> tuple[str, set[str]]:
    async with client:
        tools = await client.list_tools()
        return client.protocol_version, {tool.name for tool in tools.tools}


def test_the_demo_says_where_it_listens_and_how_to_connect(demo: Proxy) -> None:
    assert f"MCP endpoint: {demo.url}\n" in demo.stdout
    assert f"claude mcp add --transport http mcpproxy {demo.url}\n" in demo.stdout
    snippet = re.search(r"\{.*mcpServers.*\}", demo.stdout)
    assert snippet is not None
    assert json.loads(snippet[0]) == {"mcpServers": {"mcpproxy": {"url": demo.url}}}
    demo.await_ready("demo")


@pytest.mark.parametrize(("mode", "version"), ERAS)
def test_the_official_client_lists_the_tools_over_http(demo: Proxy, mode: str, version: str) -> None:
    spoken, tools = asyncio.run(version_and_tools(Client(demo.url, mode=mode)))
    assert spoken == version
    assert tools >= BUILT_IN


def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    with Proxy(tmp_path) as proxy:
        proxy.launch("--demo", "--listen", f"127.0.0.1:{proxy.port}")
        assert list((tmp_path / "tmp").glob("mcpproxy-demo-*"))
        assert proxy.stop() == 0
    assert not list((tmp_path / "tmp").glob("mcpproxy-demo-*"))
    assert not (tmp_path / ".mcpproxy").exists()


def on_stdio(home: Path) -> StdioServerParameters:
    proxy = Proxy(home, {"tiny": tiny()})
    options = ["serve", "--stdio", "--config", str(proxy.config), "--data-dir", str(proxy.data)]
    return StdioServerParameters(command=str(CONSOLE), args=options, env=environment(home))


@pytest.mark.parametrize(("mode", "version"), ERAS)
def test_the_official_client_lists_the_tools_over_stdio(tmp_path: Path, mode: str, version: str) -> None:
    spoken, tools = asyncio.run(version_and_tools(Client(on_stdio(tmp_path), mode=mode)))
    assert spoken == version
    assert tools >= BUILT_IN
    eventually(lambda: not marked(tmp_path), "nothing of the session is left")


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`serve --stdio` at the end of two bare pipes, past its handshake."""
    parameters = on_stdio(tmp_path)
    with subprocess.Popen(
        [parameters.command, *parameters.args],
        env=parameters.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("wb"),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "pipe", "version": "1"}}
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}).encode())
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        eventually(lambda: b"'tiny' is ready" in (tmp_path / "stderr").read_bytes(), "the server is held")
        yield process
        process.kill()
    for left in marked(tmp_path):
        left.kill()


def test_on_stdio_the_end_of_stdin_is_the_end(piped: subprocess.Popen[bytes], tmp_path: Path) -> None:
    rest, _ = piped.communicate(timeout=PATIENCE)
    assert piped.returncode == 0
    for line in rest.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"  # nothing else is ever printed there
    assert not marked(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_on_stdio_a_signal_stops_it_in_order(
    piped: subprocess.Popen[bytes], tmp_path: Path, number: signal.Signals
) -> None:
    piped.send_signal(number)
    assert piped.wait(timeout=PATIENCE) == 0
    assert not marked(tmp_path)


FOREIGN_HOSTS = ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example:80", ""]
FOREIGN_ORIGINS = [
    "http://evil.example",
    "https://evil.example:8443",
    "null",
    "file://",
    "http://localhost.evil.example",
]


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/readyz", "/nothing"])
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_name_is_refused(demo: Proxy, path: str, host: str) -> None:
    assert demo.get(path, {"Host": host})[0] == 421
    assert demo.get(path, {"Host": host}, "POST")[0] == 421


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/readyz", "/nothing"])
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_foreign_origin_is_refused(demo: Proxy, path: str, origin: str) -> None:
    assert demo.get(path, {"Origin": origin})[0] == 403
    assert demo.get(path, {"Origin": origin}, "POST")[0] == 403


def test_this_machine_is_let_in_under_its_own_names(demo: Proxy) -> None:
    for name in ("localhost", "127.0.0.1", "[::1]"):
        host = f"{name}:{demo.port}"
        assert demo.get("/healthz", {"Host": host, "Origin": f"http://{host}"})[0] == 200
