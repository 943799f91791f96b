"""Does everything work between both eras, whichever side speaks which, over every transport that there is?

Clients of the handshake era and of 2026-07-28, over HTTP and stdio; behind the proxy, servers of both over stdio, HTTP
and SSE. The cells that cannot be stand with their reason in `matrix_upstreams.ABSENT`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ToolListChangedNotification
from tests.journeys import npm
from tests.journeys.matrix_upstreams import ABSENT, LEGACY, MODERN, Asked, House, houses
from tests.journeys.support import CONSOLE, Proxy, environment, tiny
from tests.support.children import until

pytestmark = [pytest.mark.anyio, npm.needs_npm, pytest.mark.xdist_group("journey-matrix")]

FEATURES = ("list", "search", "call", "progress", "cancel", "list_changed")
ERAS = (LEGACY, MODERN)
FRONTS = ("http", "stdio")
UPSTREAMS = {
    "old_child": (LEGACY, "stdio"),
    "new_child": (MODERN, "stdio"),
    "old_http": (LEGACY, "http"),
    "new_http": (MODERN, "http"),
    "old_sse": (LEGACY, "sse"),
    "everything": (LEGACY, "npm stdio"),
}
PATIENCE = 60.0
"""For what must happen: long enough that only a hang reaches it."""


def without(feature: str) -> list[str]:
    """The upstreams that have what is to be tried."""
    return [name for name, kind in UPSTREAMS.items() if not {(*kind, feature), (*kind, "*")} & ABSENT.keys()]


class Agent:
    """A client of one era at one front of a proxy of its own."""

    def __init__(self, home: Path, client: Client, proxy: Proxy, changed: asyncio.Event) -> None:
        self.home = home
        self.client = client
        self._proxy = proxy
        self.changed = changed
        """Set whenever a client of the handshake era hears that the list of tools is another."""

    async def call(self, server: str, asked: Asked, **more: Any) -> CallToolResult:
        """Call a tool of a server."""
        arguments = {"name": f"{server}:{asked.tool}", "args": asked.args}
        return await self.client.call_tool("call_tool_read", arguments, **more)

    async def found(self, query: str) -> list[str]:
        """The names of the tools that a search finds."""
        answer = await self.client.call_tool("retrieve_tools", {"query": query, "limit": 100, "detail": "compact"})
        assert answer.structured_content is not None
        return [tool["name"] for tool in answer.structured_content["tools"]]

    def spoken(self, server: str) -> str:
        """The protocol revision that the proxy speaks with a server."""
        database = sqlite3.connect(f"file:{self._proxy.data / 'mcpproxy.db'}?mode=ro", uri=True)
        with contextlib.closing(database):
            rows = database.execute("SELECT listing FROM tool_lists WHERE server = ?", (server,)).fetchall()
        (version,) = [json.loads(listing)["protocol_version"] for (listing,) in rows]
        return str(version)

    def reconfigure(self, servers: dict[str, Any]) -> None:
        """Put other servers in the configuration file."""
        self._proxy.configure(servers)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def upstreams() -> Iterator[dict[str, House]]:
    with houses() as found:
        assert {name: (house.era, house.transport) for name, house in found.items()} == UPSTREAMS
        yield found


@pytest.fixture(scope="module", params=list(itertools.product(ERAS, FRONTS)), ids="-".join)
async def agent(
    request: pytest.FixtureRequest, upstreams: dict[str, House], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Agent]:
    era, front = request.param
    home = tmp_path_factory.mktemp(f"matrix-{front}")
    changed = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    with Proxy(home, {name: house.entry(home) for name, house in upstreams.items()}) as proxy:
        options = ["serve", "--stdio", "--config", str(proxy.config), "--data-dir", str(proxy.data)]
        where: Any = StdioServerParameters(command=str(CONSOLE), args=options, env=environment(home))
        if front == "http":
            where = proxy.start().url
        async with Client(where, mode="legacy" if era == LEGACY else "auto", message_handler=hear) as client:
            assert client.protocol_version == era
            yield Agent(home, client, proxy, changed)


def test_every_cell_is_tried_or_has_a_reason() -> None:
    transports = {transport for _, transport in UPSTREAMS.values()}
    tried = {(*UPSTREAMS[name], feature) for feature in FEATURES for name in without(feature)}
    cells = set(itertools.product(ERAS, transports, FEATURES))
    reasons = {cell for cell in cells if {cell, (*cell[:2], "*")} & ABSENT.keys()}
    assert tried | reasons == cells and not tried & reasons
    assert len(tried) * len(ERAS) * len(FRONTS) == 136


@pytest.mark.parametrize("server", without("list"))
async def test_list(agent: Agent, upstreams: dict[str, House], server: str) -> None:
    house = upstreams[server]
    # A call waits for a server that still connects, so after one the server is listed.
    await agent.call(server, house.echo)
    names = [f"{server}:{tool}" for tool in sorted(house.tools)]
    described = (await agent.client.call_tool("describe_tool", {"names": names})).structured_content
    assert described is not None and sorted(tool["name"] for tool in described["tools"]) == names
    assert agent.spoken(server) == house.era
    listed = {tool.name: tool.description or "" for tool in (await agent.client.list_tools()).tools}
    assert server in listed["retrieve_tools"].rpartition("Connected servers: ")[2]


@pytest.mark.parametrize("server", without("search"))
async def test_search(agent: Agent, upstreams: dict[str, House], server: str) -> None:
    await agent.call(server, upstreams[server].echo)
    assert f"{server}:echo" in await agent.found("echo")


@pytest.mark.parametrize("server", without("call"))
async def test_call(agent: Agent, upstreams: dict[str, House], server: str) -> None:
    house = upstreams[server]
    answer = await agent.call(server, house.echo)
    assert not answer.is_error
    assert house.echoed in json.dumps([answer.structured_content, str(answer.content)], ensure_ascii=False)


@pytest.mark.parametrize("server", without("progress"))
async def test_progress(agent: Agent, upstreams: dict[str, House], server: str) -> None:
    reports: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append(progress)

    answer = await agent.call(server, upstreams[server].steps, progress_callback=note)
    assert not answer.is_error
    assert reports == upstreams[server].reports


@pytest.mark.parametrize("server", without("cancel"))
async def test_cancel(agent: Agent, upstreams: dict[str, House], server: str) -> None:
    house = upstreams[server]
    assert house.hang is not None
    begun, given_up = house.begun(agent.home), house.given_up(agent.home)
    call = asyncio.create_task(agent.call(server, house.hang))
    await until(lambda: house.begun(agent.home) > begun, "the call arrives", PATIENCE)
    call.cancel()
    await until(lambda: house.given_up(agent.home) > given_up, "the server is told to give it up", PATIENCE)
    with contextlib.suppress(asyncio.CancelledError):
        await call
    assert not (await agent.call(server, house.echo)).is_error


@pytest.mark.parametrize("server", without("list_changed"))
async def test_list_changed(agent: Agent, upstreams: dict[str, House], server: str) -> None:
    name = f"grown_for_{agent.home.name.replace('-', '_')}"
    asked = upstreams[server].grow(name)
    assert asked is not None
    assert not (await agent.call(server, asked)).is_error
    # What a server adds waits for an operator; until the server is listed again, there is no such tool.
    async with asyncio.timeout(PATIENCE):
        while (code := _code(await agent.call(server, Asked(name, {})))) == "UNKNOWN_TOOL":
            await asyncio.sleep(0.05)
    assert code == "NOT_APPROVED"


async def test_a_client_hears_that_other_servers_are_there(agent: Agent, upstreams: dict[str, House]) -> None:
    for name, house in upstreams.items():
        await agent.call(name, house.echo)
    servers = {name: house.entry(agent.home) for name, house in upstreams.items()} | {"late": tiny()}
    async with asyncio.timeout(PATIENCE):
        if agent.client.protocol_version == LEGACY:
            agent.reconfigure(servers)
            while "late" not in await _named(agent):
                await agent.changed.wait()
                agent.changed.clear()
        else:
            async with agent.client.listen(tools_list_changed=True) as changes:
                agent.reconfigure(servers)
                while "late" not in await _named(agent):
                    await anext(aiter(changes))


def _code(answer: CallToolResult) -> str:
    assert answer.is_error and answer.structured_content is not None
    return str(answer.structured_content["error"]["code"])


async def _named(agent: Agent) -> str:
    tools = (await agent.client.list_tools()).tools
    return next(tool.description or "" for tool in tools if tool.name == "retrieve_tools")
