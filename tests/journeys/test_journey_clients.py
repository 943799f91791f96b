"""Programs that we did not write speak to `/mcp`: the official clients, the Inspector and the conformance suite."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.npm import MODULES, NODE, needs_npm
from tests.journeys.support import PATIENCE, Proxy, environment

CLIENT = Path(__file__).with_name("typescript_client.mjs")

OWED = {
    "2025-11-25": {
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "logging-set-level",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
    },
    "2026-07-28": {
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
        "caching",
        "http-header-validation",
        "sep-2164-resource-not-found",
        "input-required-result-unsupported-methods",
    },
}
"""What an endpoint that aggregates others owes, of all that the suite asks of a server with fixtures of its own."""

pytestmark = needs_npm


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(tmp_path_factory.mktemp("clients")) as demo:
        demo.launch("--demo", "--listen", f"127.0.0.1:{demo.port}")
        demo.await_ready("demo")
        yield demo


def _run(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NODE, *arguments],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE * 3,
        check=False,
    )


def _node(home: Path, *arguments: str | Path) -> str:
    done = _run(home, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("package", ["client", "sdk"])
def test_the_official_typescript_client_finds_and_calls_tools(proxy: Proxy, package: str) -> None:
    answer: dict[str, Any] = json.loads(_node(proxy.home, CLIENT, package, proxy.url, MODULES).splitlines()[-1])
    assert ["call_tool_read", True] in answer["tools"]
    assert ["call_tool_destructive", False] in answer["tools"]
    assert answer["found"] == "demo:list_notes"
    assert answer["read"] == 6
    assert answer["refused"] == (
        "Tool 'demo:clear_notes' is marked destructive by server, use call_tool_destructive instead of call_tool_read"
    )
    assert answer["slow"].startswith("After 1 s")
    assert answer["reports"] > 3


def test_the_inspector_calls_a_tool(proxy: Proxy) -> None:
    inspector = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    shown = _node(
        proxy.home,
        inspector,
        "--cli",
        proxy.url,
        "--transport",
        "http",
        "--method",
        "tools/call",
        "--tool-name",
        "call_tool_read",
        "--tool-arg",
        "name=demo:list_notes",
    )
    assert "Welcome to the notes box" in shown


@pytest.mark.parametrize("revision", OWED)
def test_the_conformance_suite_passes_on_what_an_aggregating_endpoint_owes(proxy: Proxy, revision: str) -> None:
    assert proxy.get("/healthz")[0] == 200  # a dead server would pass dozens of its checks
    suite = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    done = _run(proxy.home, suite, "server", "--url", proxy.url, "--requirements", revision)
    summary = done.stdout[done.stdout.index("=== SUMMARY ===") :]
    scenarios = re.findall(r"^([✓✗]) (\S+): (\d+) passed", summary, re.MULTILINE)
    outcomes = {name: (mark, int(passed)) for mark, name, passed in scenarios}
    assert OWED[revision] <= outcomes.keys()
    failed = {name: outcomes[name] for name in OWED[revision] if outcomes[name][0] != "✓" or not outcomes[name][1]}
    assert not failed, done.stdout
    assert proxy.get("/healthz")[0] == 200
