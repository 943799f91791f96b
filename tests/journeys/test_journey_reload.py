"""What does a change of the configuration file touch? That one server, while everything else runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.support import Proxy, Spec, eventually, serving, tiny

SERVERS: dict[str, Spec] = {
    "stays": tiny("--tool", "stay"),
    "changes": tiny("--tool", "old"),
    "goes": tiny("--tool", "go"),
}


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with serving(tmp_path, SERVERS) as running:
        running.await_ready(*SERVERS)
        yield running


def pids(proxy: Proxy) -> dict[str, int]:
    """The process of each tiny server, by the name of its tool."""
    lines = {process.pid: process.cmdline() for process in proxy.children()}
    return {line[line.index("--tool") + 1]: pid for pid, line in lines.items() if "--tool" in line}


def test_adding_changing_and_removing_a_server_touches_that_server_alone(proxy: Proxy) -> None:
    before = pids(proxy)
    assert before.keys() == {"stay", "old", "go"}

    proxy.configure({**SERVERS, "comes": tiny("--tool", "come")})
    proxy.await_ready("comes")
    assert {**pids(proxy), **before} == pids(proxy)
    assert [tool["name"] for tool in proxy.definitions("comes")] == ["come"]

    proxy.configure({"stays": SERVERS["stays"], "changes": tiny("--tool", "new"), "comes": tiny("--tool", "come")})
    proxy.await_ready("changes", times=2)
    eventually(lambda: pids(proxy).keys() == {"stay", "new", "come"}, "the removed and the replaced process are gone")
    assert pids(proxy)["stay"] == before["stay"]
    assert [tool["name"] for tool in proxy.definitions("changes")] == ["new"]
    assert proxy.times_ready("stays") == 1
    proxy.await_log("the configuration was reloaded: comes$")
    proxy.await_log("the configuration was reloaded: changes, goes$")


def test_a_file_that_does_not_load_leaves_the_running_configuration_in_force(proxy: Proxy) -> None:
    before = pids(proxy)

    proxy.write('{"tools_limit": 500}')
    line = proxy.await_log("the running one stays in force")
    assert "ERROR" in line
    assert "tools_limit: 500" in line
    proxy.write("{ this is no JSON")
    proxy.await_log("mcp_config.json does not load: .*JSON")
    assert pids(proxy) == before
    assert proxy.get("/readyz")[0] == 200

    proxy.configure({**SERVERS, "comes": tiny("--tool", "come")})
    proxy.await_ready("comes")
    assert {**pids(proxy), **before} == pids(proxy)


def test_a_file_that_is_gone_for_a_while_changes_nothing(proxy: Proxy) -> None:
    before = pids(proxy)
    text = proxy.config.read_text()
    proxy.config.unlink()
    proxy.await_log("the running one stays in force: .*no such file")
    assert pids(proxy) == before

    proxy.write(text)
    proxy.await_log("the configuration was reloaded")
    assert pids(proxy) == before


def test_a_disabled_server_is_stopped_and_comes_back_when_enabled(proxy: Proxy) -> None:
    before = pids(proxy)
    proxy.configure({**SERVERS, "goes": {**SERVERS["goes"], "enabled": False}})
    eventually(lambda: pids(proxy).keys() == {"stay", "old"}, "the disabled server's process is gone")
    proxy.configure(SERVERS)
    proxy.await_ready("goes", times=2)
    after = pids(proxy)
    assert (after["stay"], after["old"]) == (before["stay"], before["old"])


def test_a_setting_that_needs_a_restart_says_so(proxy: Proxy) -> None:
    proxy.write(proxy.config.read_text().replace(f"127.0.0.1:{proxy.port}", "127.0.0.1:1"))
    proxy.await_log("listen takes effect at the next start")
    assert proxy.get("/healthz")[0] == 200
