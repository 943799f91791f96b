"""One real proxy, four good upstreams and the bad ones beside them; agents that call them; and what it all holds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import psutil
from tests.agent.wire_client import WireClient
from tests.faults.upstream_table import Fault
from tests.journeys.support import PATIENCE, Proxy, Spec, alive_at, environment, eventually, free_port, tiny
from tests.support.bad_server import TOOLS
from tests.support.children import command

ROOT = Path(__file__).parents[2]
GOOD = ("good-stdio-1", "good-stdio-2", "good-http-1", "good-http-2")
BAD = ("bad-stdio", "hasty-stdio", "bad-http", "hasty-http")
LIMIT = 2 * 1024 * 1024
"""`max_result_bytes`, so that what is too large is soon known to be."""
PATIENT, HASTY = 60, 0.5
"""Seconds that a call to a bad server may take: enough on any machine, or soon over."""


class HttpProcess:
    """A misbehaving HTTP server; it may die and be started again at the same addresses."""

    def __init__(self, home: Path, count: int) -> None:
        self._home = home
        self.ports = [free_port() for _ in range(count)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, after whatever became of the one before."""
        self.end()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.upstream_http_server", *map(str, self.ports)],
            cwd=ROOT,
            env=environment(self._home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(lambda: all(map(alive_at, self.ports)), "the HTTP servers take connections")

    def end(self) -> None:
        """End it, stopped or not."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def process(self) -> psutil.Process:
        """The process."""
        assert self._process is not None
        return psutil.Process(self._process.pid)

    def url(self, number: int = 0) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.ports[number]}/mcp"


class Upstreams:
    """The good ones and the bad ones, as a configuration and as processes."""

    def __init__(self, home: Path) -> None:
        self.good_http = HttpProcess(home, 2)
        self.bad_http = HttpProcess(home, 1)

    def specs(self) -> dict[str, Spec]:
        """What an operator writes about them."""
        urls = [self.good_http.url(0), self.good_http.url(1)]
        good = zip(GOOD, [tiny(), tiny(), *({"url": url, "protocol": "http"} for url in urls)], strict=True)
        return {
            **dict(good),
            "bad-stdio": {**misbehaving("bad-stdio"), "call_tool_timeout": PATIENT},
            "hasty-stdio": {**misbehaving("hasty-stdio"), "call_tool_timeout": HASTY},
            "bad-http": {"url": self.bad_http.url(), "protocol": "http", "call_tool_timeout": PATIENT},
            "hasty-http": {"url": self.bad_http.url(), "protocol": "http", "call_tool_timeout": HASTY},
        }

    def __enter__(self) -> Upstreams:
        self.good_http.start()
        self.bad_http.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.good_http.end()
        self.bad_http.end()


def misbehaving(name: str) -> Spec:
    """A configuration entry for a stdio server with every fault."""
    tools = [{"name": tool, "inputSchema": {"type": "object"}} for tool in TOOLS]
    program, *args = command(sign=name, pages=[tools])
    return {"command": program, "args": args}


def child_of(parent: int, server: str) -> psutil.Process:
    """The process of a bad stdio server."""
    sign = f'"sign": "{server}"'
    children = psutil.Process(parent).children()
    (found,) = [child for child in children if _says(child, sign)]
    return found


def _says(process: psutil.Process, sign: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return sign in " ".join(process.cmdline())
    return False


@contextlib.contextmanager
def serving(home: Path) -> Iterator[tuple[Proxy, Upstreams]]:
    """A real proxy in front of all of them, ready."""
    with Upstreams(home) as upstreams, Proxy(home, upstreams.specs(), max_result_bytes=LIMIT) as proxy:
        proxy.start().await_ready(*upstreams.specs())
        yield proxy, upstreams


class Agent:
    """One agent, with a session of its own."""

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self.told: list[dict[str, Any]] = []
        """Every result that it got."""

    @property
    def session(self) -> str:
        """The session that its calls are on record with."""
        return self._client.headers["Mcp-Session-Id"]

    async def ask(self, server: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool. Whatever an upstream does, what comes back is a proper result of ours."""
        asked = json.dumps({"name": f"{server}:{tool}", "args": arguments})
        answer = await self._client.call("call_tool_read", asked)
        assert answer.status == 200 and "error" not in answer.decoded, answer.message[:1000]
        result: dict[str, Any] = answer.decoded["result"]
        self.told.append(result)
        return result


@contextlib.asynccontextmanager
async def agents(url: str, count: int) -> AsyncIterator[list[Agent]]:
    """Agents past their handshake."""
    timeout = aiohttp.ClientTimeout(total=2 * PATIENCE)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        clients = [WireClient(http, url, era="handshake", lane=True) for _ in range(count)]
        for client in clients:
            await client.connect()
        yield [Agent(client) for client in clients]


class Neighbour:
    """Calls one good upstream over and over, each time with words of its own, and compares every answer."""

    def __init__(self, agent: Agent, server: str) -> None:
        self.agent = agent
        self.server = server
        self.sent: list[str] = []
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            text = f"{self.server} {uuid.uuid4().hex}"
            result = await self.agent.ask(self.server, "echo", text=text)
            assert result.get("structuredContent") == {"text": text}, result
            self.sent.append(text)
            await asyncio.sleep(0.005)

    def made(self) -> int:
        """How many calls it has made; raises where one of them went wrong."""
        if self._task.done():
            self._task.result()
        return len(self.sent)

    async def stop(self) -> None:
        """No further call; raises where one went wrong."""
        call_again = len(self.sent)
        while self.made() == call_again:  # in the pause after a call: one that is cut off would be on record so
            await asyncio.sleep(0)
        self._task.cancel()
        await asyncio.wait({self._task})


async def bring_about(fault: Fault, caller: Agent, upstreams: Upstreams, proxy: int) -> dict[str, Any]:
    """Make the call that brings a fault about; gives its result."""
    over_http = fault.transport == "http"
    if fault.act is None or over_http:
        culprit = upstreams.bad_http.process if over_http else None
    else:
        culprit = child_of(proxy, fault.server)
    if culprit is not None and fault.act == "stop":
        culprit.suspend()
    try:
        result = await caller.ask(fault.server, fault.tool, **fault.arguments)
    finally:
        if culprit is not None and fault.act == "stop":
            culprit.resume()
    if culprit is not None and fault.act == "kill":
        culprit.kill()
    if fault.act == "start":
        await asyncio.to_thread(upstreams.bad_http.start)
    return result


async def recovered(caller: Agent, server: str) -> None:
    """Call the bad server until it answers as it should; until then it may only be away."""
    async with asyncio.timeout(PATIENCE):
        while True:
            text = uuid.uuid4().hex
            result = await caller.ask(server, "echo", text=text)
            if not result.get("isError"):
                assert result["structuredContent"] == {"text": text}
                return
            assert result["structuredContent"]["error"]["code"] in ("UPSTREAM_UNAVAILABLE", "TIMEOUT"), result
            await asyncio.sleep(0.05)


def records(proxy: Proxy, **filters: str) -> list[dict[str, Any]]:
    """Every record that a filter finds."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = proxy.api(f"/activity?{urlencode({**filters, **more, 'limit': '1000'})}")
        found += page["activities"]
        cursor = page["next_cursor"]
        if not cursor:
            return found


def holdings(process: psutil.Process) -> Counter[str]:
    """What a process holds for its upstreams: children, descriptors by their kind, and logs by their name."""
    held = Counter(child=len(process.children(recursive=True)))
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = descriptor.readlink()
            if not target.is_absolute():  # a pipe, a socket, or what tells that a child has ended
                held[str(target).partition(":")[0]] += 1
            elif target.name.startswith("server-"):
                held[target.name] += 1
    return held


def forget_peak(process: psutil.Process) -> int:
    """Count the peak of its memory from now on; gives what it uses now."""
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    return int(process.memory_info().rss)


def peak(process: psutil.Process) -> int:
    """The most memory that a process has used."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (found,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(found.split()[1]) * 1024
