"""Does the proxy hold the servers that people really run? npm's own, over every transport they offer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from tests.journeys import npm
from tests.journeys.support import Proxy, eventually, serving

pytestmark = [npm.needs_npm, pytest.mark.xdist_group("journey-npm")]


@pytest.fixture(scope="module")
def over_http() -> Iterator[npm.Everything]:
    with npm.everything("streamableHttp") as running:
        yield running


@pytest.fixture(scope="module")
def over_sse() -> Iterator[npm.Everything]:
    with npm.everything("sse") as running:
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def proxy(
    tmp_path_factory: pytest.TempPathFactory, over_http: npm.Everything, over_sse: npm.Everything, files: Path
) -> Iterator[Proxy]:
    servers: dict[str, dict[str, Any]] = {
        "stdio": npm.stdio("server-everything", "stdio"),
        "http": {"url": over_http.url},
        "sse": {"url": over_sse.url},
        "files": npm.stdio("server-filesystem", str(files)),
    }
    with serving(tmp_path_factory.mktemp("home"), servers) as running:
        running.await_ready(*servers)
        yield running


def listed(client: Client) -> dict[str, types.Tool]:
    async def ask() -> dict[str, types.Tool]:
        async with client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return asyncio.run(ask())


async def echo(proxy: Proxy, server: str, message: str) -> str:
    """What the echo tool of a server says when it is called through the proxy."""
    async with Client(proxy.url) as client:
        called = await client.call_tool("call_tool_read", {"name": f"{server}:echo", "args": {"message": message}})
        return called.model_dump_json()


def started_directly(package: str, *arguments: str) -> Client:
    command, *rest = npm.server(package, *arguments)
    return Client(StdioServerParameters(command=command, args=rest))


def kept(proxy: Proxy, server: str) -> dict[str, types.Tool]:
    return {tool["name"]: types.Tool.model_validate(tool) for tool in proxy.definitions(server)}


def assert_lists_the_same(proxy: Proxy, server: str, direct: dict[str, types.Tool]) -> None:
    assert direct
    # server-everything adds tools after the handshake and says so; the proxy lists again a moment later.
    eventually(lambda: kept(proxy, server).keys() == direct.keys(), f"all tools of {server!r} are kept", 15)
    assert kept(proxy, server) == direct


def test_server_everything_is_listed_over_stdio_as_the_official_client_sees_it(proxy: Proxy) -> None:
    direct = listed(started_directly("server-everything", "stdio"))
    assert_lists_the_same(proxy, "stdio", direct)
    assert any(tool.output_schema for tool in direct.values())
    assert any(tool.annotations for tool in direct.values())


def test_server_everything_is_listed_over_streamable_http_as_the_official_client_sees_it(
    proxy: Proxy, over_http: npm.Everything
) -> None:
    assert_lists_the_same(proxy, "http", listed(Client(over_http.url)))


def test_server_everything_is_found_to_speak_sse_and_is_listed_as_the_official_client_sees_it(
    proxy: Proxy, over_sse: npm.Everything
) -> None:
    assert_lists_the_same(proxy, "sse", listed(Client(sse_client(over_sse.url), mode="legacy")))


def test_server_filesystem_is_listed_with_its_annotations_and_output_schemas(proxy: Proxy, files: Path) -> None:
    direct = listed(started_directly("server-filesystem", str(files)))
    assert_lists_the_same(proxy, "files", direct)
    assert all(tool.annotations and tool.output_schema for tool in direct.values())


@pytest.mark.parametrize(("server", "sign"), [("stdio", "server-everything"), ("files", "server-filesystem")])
def test_a_killed_stdio_server_is_back_after_the_first_pause(proxy: Proxy, server: str, sign: str) -> None:
    victim = proxy.child(sign)
    before = proxy.times_ready(server)
    victim.kill()
    proxy.await_ready(server, times=before + 1)
    # One fault, one pause: the first new attempt worked.
    assert proxy.stderr.count(f"server {server!r}: ") == 1
    assert "killed by SIGKILL" in proxy.await_log(f"server '{server}': ")
    assert proxy.child(sign).pid != victim.pid


@pytest.mark.parametrize("server", ["http", "sse"])
def test_a_killed_http_server_is_taken_up_again_when_it_is_back(
    proxy: Proxy, over_http: npm.Everything, over_sse: npm.Everything, server: str
) -> None:
    upstream = {"http": over_http, "sse": over_sse}[server]
    before = proxy.times_ready(server)
    upstream.kill()
    upstream.start()
    # The proxy may not have noticed yet: the call itself finds out, and goes through all the same.
    assert "Echo: still there?" in asyncio.run(echo(proxy, server, "still there?"))
    proxy.await_ready(server, times=before + 1)
