"""What of an upstream that never gets so far? It says why, costs the others nothing, and is there once it is mended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.faults.upstream_house import GOOD, HttpProcess, Neighbour, Upstreams, agents, misbehaving, recovered
from tests.faults.upstream_http_server import MENDED
from tests.journeys.support import Proxy, Spec, free_port
from tests.support.children import run, until

pytestmark = pytest.mark.xdist_group("faults-upstream-start")


class Broken(NamedTuple):
    """One upstream that does not start, and what is said about it."""

    name: str
    spec: Spec
    state: str
    reason: str
    """A pattern; empty where there is nothing to say yet."""
    mends: bool = True
    """Whether it is tried again soon enough to wait for it here."""


def unless_mended(name: str, otherwise: str) -> Spec:
    """A stdio server that is in order once it is mended, and until then does something else."""
    spec = misbehaving(name)
    script = f'if [ -e "$HOME/{MENDED}" ]; then exec "$0" "$@"; fi; {otherwise}'
    return {"command": "sh", "args": ["-c", script, spec["command"], *spec["args"]]}


def all_broken(http: HttpProcess) -> list[Broken]:
    """Every one of them."""
    origin = http.url().removesuffix("/mcp")
    nobody = f"http://127.0.0.1:{free_port()}"
    endless = '"$0" -I -S "$3" \'{"endless": "same"}\''
    listless = '"$0" -I -S "$3" \'{"pages": [["{half"]]}\''
    return [
        Broken("ends", unless_mended("ends", "echo No licence >&2; exit 3"), "backing_off",
               "the process exited with code 3; its last words: No licence"),
        Broken("prints", unless_mended("prints", "echo usage: ends; exit 0"), "backing_off",
               "the process exited with code 0; its last words: usage: ends"),
        Broken("lists-half", unless_mended("lists-half", f"exec {listless}"), "backing_off", "not JSON"),
        Broken("lists-for-ever", unless_mended("lists-for-ever", f"exec {endless}"), "backing_off",
               "its tool list never ends"),
        Broken("waits", unless_mended("waits", "exec sleep 1000"), "connecting", "", mends=False),
        Broken("missing", {"command": "no-such-program"}, "backing_off", "was not found on the PATH", mends=False),
        Broken("nobody", {"url": f"{nobody}/mcp", "protocol": "http"}, "backing_off", f"cannot reach {nobody}",
               mends=False),
        Broken("hanging", {"url": f"{origin}/hanging", "protocol": "http"}, "connecting", "", mends=False),
        Broken("redirecting", {"url": f"{origin}/redirecting", "protocol": "http"}, "backing_off",
               "HTTP 307: it redirects to https://example.org/mcp; set `url` to that"),
        Broken("failing", {"url": f"{origin}/failing", "protocol": "http"}, "backing_off",
               "HTTP 503: down for repairs"),
        Broken("showing", {"url": f"{origin}/showing", "protocol": "http"}, "backing_off",
               "the answer's content type is 'text/html'"),
    ]  # fmt: skip


class Place(NamedTuple):
    """A proxy with all the broken ones, and the good ones beside them."""

    proxy: Proxy
    broken: list[Broken]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("start")
    with Upstreams(home) as upstreams:
        broken = all_broken(upstreams.bad_http)
        good = {name: spec for name, spec in upstreams.specs().items() if name in GOOD}
        bad = {each.name: {**each.spec, "call_tool_timeout": 5 if each.mends else 0.5} for each in broken}
        with Proxy(home, {**bad, **good}) as proxy:
            proxy.start().await_ready(*GOOD)
            yield Place(proxy, broken)


def test_each_says_why_and_an_agent_is_told_so(place: Place) -> None:
    proxy = place.proxy

    def said(each: Broken) -> bool:
        (server,) = [server for server in proxy.api("/servers")["servers"] if server["name"] == each.name]
        return server["state"] == each.state and re.search(each.reason, server.get("reason") or "") is not None

    for each in place.broken:
        proxy.await_so(lambda each=each: said(each), f"{each.name} is {each.state}: {each.reason}")  # type: ignore[misc]

    async def main() -> None:
        async with agents(proxy.url, 1) as (agent,):
            for each in place.broken:
                result = await agent.ask(each.name, "echo", text="hello")
                error = result["structuredContent"]["error"]
                assert error["code"] == "UPSTREAM_UNAVAILABLE"
                assert error["message"].startswith(f"Server '{each.name}' is not available (")
                assert re.search(each.reason or "still connecting after 0.5 s", error["message"]), error

    run(main())


def test_they_leave_the_good_ones_alone_and_come_back_once_they_are_mended(place: Place) -> None:
    proxy = place.proxy

    async def main() -> None:
        async with agents(proxy.url, len(GOOD) + 1) as (agent, *others):
            good = [Neighbour(other, server) for other, server in zip(others, GOOD, strict=True)]
            await until(lambda: all(neighbour.made() > 10 for neighbour in good), "every neighbour works")
            await asyncio.to_thread((proxy.home / MENDED).touch)
            for each in place.broken:
                if each.mends:
                    await recovered(agent, each.name)
            for neighbour in good:
                await neighbour.stop()

    run(main())
    assert {server: proxy.times_ready(server) for server in GOOD} == dict.fromkeys(GOOD, 1)
    states = {server["name"]: server["state"] for server in proxy.api("/servers")["servers"]}
    assert all(states[each.name] == "ready" for each in place.broken if each.mends)
