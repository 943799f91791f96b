"""Does a fault of one upstream cost its own calls only? Every row of the table, beside four good upstreams at work.

One real proxy lives through all of it. Each fault goes on until all four neighbours have made calls meanwhile; each of
these has words of its own and is compared, in the answer and on record.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import psutil
import pytest
from tests.faults.upstream_house import (
    BAD,
    GOOD,
    Agent,
    Neighbour,
    Upstreams,
    agents,
    bring_about,
    child_of,
    forget_peak,
    holdings,
    peak,
    records,
    recovered,
    serving,
)
from tests.faults.upstream_table import FAULTS, Fault
from tests.journeys.support import Proxy, eventually
from tests.support.children import alive, run, until

pytestmark = pytest.mark.xdist_group("faults-upstream")

MEANWHILE = 10
"""Calls that each neighbour makes while the fault goes on."""
MEMORY = 64_000_000
"""What a fault may cost: some copies of the largest result, and by far not the 100 MB that some servers send."""


class Place(NamedTuple):
    """The proxy, what is around it, and what it may hold once a fault is over."""

    proxy: Proxy
    upstreams: Upstreams
    process: psutil.Process
    held: Counter[str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("faults")) as (proxy, upstreams):
        process = psutil.Process(proxy.process.pid)

        async def everyone_once() -> None:
            async with agents(proxy.url, 1) as (agent,):
                for server in (*GOOD, *BAD):
                    await recovered(agent, server)

        run(everyone_once())
        proxy.api("/tools/search?q=echo")  # what the search needs is loaded by then
        yield Place(proxy, upstreams, process, holdings(process) | Counter(f"server-{name}.log" for name in BAD))


async def while_it_goes_on(fault: Fault, place: Place, caller: Agent, good: list[Neighbour]) -> None:
    """Let the fault happen again and again until every neighbour has worked beside it."""
    before = [neighbour.made() for neighbour in good]

    def enough() -> bool:
        return all(neighbour.made() >= made + MEANWHILE for neighbour, made in zip(good, before, strict=True))

    while True:
        await bring_about(fault, caller, place.upstreams, place.process.pid)
        if enough():
            return
        if fault.act in ("kill", "start"):  # once is enough of that
            await until(enough, "every neighbour goes on")
            return


def counted(fault: Fault) -> bool:
    """Whether the server can tell how often it heard of the calls of this fault."""
    return fault.transport == "http" and fault.tool not in ("die", "echo")


async def heard_by(looker: Agent, fault: Fault) -> int:
    """How often the bad server heard of such a call, under whatever address; a call must never be sent twice."""
    if not counted(fault):
        return 0
    heard = await looker.ask("bad-http", "heard")
    return int(heard["structuredContent"].get(fault.tool, 0))


def check_what_was_told(fault: Fault, results: list[dict[str, Any]]) -> None:
    """The agent got what the table says, in words that name the server."""
    assert results
    for result in results:
        if fault.code is None:
            assert not result.get("isError"), result
            assert re.search(fault.says, str(result["structuredContent"]).replace("'", '"')), result
            continue
        error = result["structuredContent"]["error"]
        assert result["isError"] is True and error["code"] == fault.code, error
        assert error["message"].startswith(f"Server '{fault.server}' "), error
        assert re.search(fault.says, error["message"]), error
        assert error["details"]["server"] == fault.server


def check_records(fault: Fault, proxy: Proxy, session: str, results: list[dict[str, Any]]) -> None:
    """Every call to the bad one is on record with what the agent was told."""
    written = records(proxy, session_id=session, type="tool_call")
    assert {record["status"] for record in written} == {"success" if fault.code is None else "error"}
    assert {record["metadata"].get("code") for record in written} == {fault.code}
    assert {(record["server_name"], record["tool_name"]) for record in written} == {(fault.server, fault.tool)}
    told = [r["structuredContent"]["error"]["message"] if fault.code else None for r in reversed(results)]
    assert [record["error_message"] for record in written] == told


def check_neighbour(proxy: Proxy, neighbour: Neighbour) -> None:
    """Every call to a good one is on record with its own words, in and out."""
    written = records(proxy, session_id=neighbour.agent.session, type="tool_call")
    assert {(record["server_name"], record["status"]) for record in written} == {(neighbour.server, "success")}
    assert [record["arguments"] for record in reversed(written)] == [{"text": text} for text in neighbour.sent]
    assert all(record["response"]["structuredContent"] == record["arguments"] for record in written)


def check_nothing_is_left(place: Place) -> None:
    """It holds no more than at the beginning, once idle connections have been dropped."""

    def excess() -> Counter[str]:
        return holdings(place.process) - place.held

    try:
        eventually(lambda: not excess(), "nothing is left over")
    except AssertionError as error:
        raise AssertionError(f"{error}: {excess()}") from None


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.id) for fault in FAULTS])
def test_a_fault_of_one_upstream_costs_its_own_calls_only(place: Place, fault: Fault) -> None:
    proxy = place.proxy
    times_ready = {server: proxy.times_ready(server) for server in GOOD}
    before = child_of(place.process.pid, fault.server).pid if fault.transport == "stdio" else None

    async def main() -> None:
        async with agents(proxy.url, len(GOOD) + 2) as (caller, looker, *others):
            good = [Neighbour(agent, server) for agent, server in zip(others, GOOD, strict=True)]
            heard = await heard_by(looker, fault)
            await while_it_goes_on(fault, place, caller, good)
            await recovered(looker, fault.server)
            assert await heard_by(looker, fault) == heard + (len(caller.told) if counted(fault) else 0)
            for neighbour in good:
                await neighbour.stop()
            check_what_was_told(fault, caller.told)
            await asyncio.to_thread(check_records, fault, proxy, caller.session, caller.told)
            for neighbour in good:
                await asyncio.to_thread(check_neighbour, proxy, neighbour)
        for pid in [result["structuredContent"]["pid"] for result in caller.told if fault.tool == "grandchild"]:
            await until(lambda pid=pid: not alive(pid), "what the server left behind is ended")  # type: ignore[misc]

    run(main())
    states = {server["name"]: server["state"] for server in proxy.api("/servers")["servers"]}
    assert states[fault.server] == "ready"
    assert {server: proxy.times_ready(server) for server in GOOD} == times_ready
    if before is not None:
        assert (child_of(place.process.pid, fault.server).pid != before) is fault.ends
    check_nothing_is_left(place)


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.id) for fault in FAULTS if fault.large])
def test_what_is_too_large_is_never_held(place: Place, fault: Fault) -> None:
    async def main() -> None:
        async with agents(place.proxy.url, 1) as (caller,):
            await recovered(caller, fault.server)
            used = forget_peak(place.process)
            await bring_about(fault, caller, place.upstreams, place.process.pid)
            await recovered(caller, fault.server)
            assert peak(place.process) - used < MEMORY

    run(main())
