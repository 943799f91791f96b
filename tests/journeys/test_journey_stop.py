"""What is left when it stops? Nothing: no child, no grandchild, however it came to its end."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from mcp import Client
from tests.journeys.support import TINY, Proxy, Spec, alive, eventually, marked, serving, tiny

STOP_SECONDS = 15.0

# A launcher that stays and has the server as its child, as npx and uvx do.
LAUNCHED: Spec = {"command": "sh", "args": ["-c", f"{sys.executable} -I -S {TINY} --tool launched; exit"]}
SERVERS = {"plain": tiny(), "stubborn": tiny("--helper"), "launched": LAUNCHED}


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with serving(tmp_path, SERVERS) as running:
        running.await_ready(*SERVERS)
        yield running


def descendants(proxy: Proxy) -> list[psutil.Process]:
    """All that it started, and that these started."""
    found = proxy.children()
    commands = [" ".join(process.cmdline()) for process in found]
    assert sum("tiny_server.py" in command for command in commands) == 4
    assert sum("sh -c" in command for command in commands) == 1
    assert sum("SIG_IGN" in command and "time.sleep(600)" in command for command in commands) == 1
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_all_its_children_in_time(proxy: Proxy, number: signal.Signals) -> None:
    children = descendants(proxy)
    started = time.monotonic()
    assert proxy.stop(number) == 0
    assert time.monotonic() - started < STOP_SECONDS
    assert [child for child in children if alive(child)] == []
    assert marked(proxy.home) == []


def test_a_client_that_listens_does_not_hold_up_the_stop(proxy: Proxy) -> None:
    async def listen_while_it_stops() -> None:
        async with Client(proxy.url, mode="legacy") as client:
            await client.list_tools()
            started = time.monotonic()
            assert await asyncio.to_thread(proxy.stop) == 0
            assert time.monotonic() - started < STOP_SECONDS

    asyncio.run(listen_while_it_stops())
    assert marked(proxy.home) == []


def test_nothing_is_left_when_it_is_killed(proxy: Proxy) -> None:
    children = descendants(proxy)
    proxy.kill()
    eventually(lambda: not any(map(alive, children)), "children, grandchildren and reaper are gone", 15)
    assert marked(proxy.home) == []


def test_a_killed_reaper_is_replaced_and_the_new_one_knows_every_child(proxy: Proxy) -> None:
    reaper = proxy.child("groups = set()")
    reaper.kill()
    # The next server that starts finds that the reaper is gone and brings a new one, which learns of all others.
    proxy.child("--helper").kill()
    proxy.await_ready("stubborn", times=2)
    assert alive(proxy.child("groups = set()"))
    children = proxy.children()
    proxy.kill()
    eventually(lambda: not any(map(alive, children)), "children, grandchildren and the new reaper are gone", 15)
    assert marked(proxy.home) == []


def test_the_helper_of_a_crashed_server_goes_with_it(proxy: Proxy) -> None:
    (helper,) = [process for process in proxy.children() if "time.sleep(600)" in " ".join(process.cmdline())]
    proxy.child("--helper").kill()
    proxy.await_ready("stubborn", times=2)
    assert not alive(helper)
