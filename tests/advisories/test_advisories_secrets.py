"""Where could a secret of the configuration come to light? A canary in each place that holds one, on every surface."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.advisories.asking import API, Asking
from tests.advisories.hostile_login import hostile_login
from tests.calls.proxy import ECHO
from tests.journeys.support import KEY, Proxy, eventually, run

pytestmark = pytest.mark.xdist_group("advisories")

CANARIES = {
    place: f"canary-{place}-4f9a1c77e2"
    for place in ("env", "expanded", "args", "inline", "user", "query", "header", "oauth")
}
TELLTALE = "import os, sys; print(dict(os.environ), sys.argv, file=sys.stderr, flush=True); sys.exit(3)"
"""A server that tells all it knows, as those do that print a traceback with their settings."""
READS = [
    *(
        "status",
        "servers",
        "tools",
        "tools/waiting",
        "tools/search?q=reads",
        "config",
        "tokens",
        "docs",
        "openapi.json",
    ),
    *("activity?limit=1000", "activity/summary", "activity/export", "activity/export?format=csv", "activity/verify"),
    *(
        f"servers/{name}{what}"
        for name in ("good", "telltale", "remote", "guarded")
        for what in ("", "/logs", "/tools")
    ),
]
PAGES = [
    *("/ui/", "/ui/servers", "/ui/tools", "/ui/waiting", "/ui/activity", "/ui/tokens", "/ui/settings"),
    *("/ui/servers/new", "/ui/servers/import", "/ui/tool?name=good:line"),
    *(
        f"/ui/{page}?name={name}"
        for name in ("good", "telltale", "remote", "guarded")
        for page in ("server", "server/edit")
    ),
]
COMMANDS = [
    "status",
    "doctor",
    "config show",
    "config validate",
    "upstream list",
    *(f"upstream logs {name}" for name in ("good", "telltale", "remote", "guarded")),
    "tools list",
    "tools show good:line",
    "activity list -n 1000",
    "activity export",
    "activity export --format csv",
    "activity summary",
    "token list",
]


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    secret_args = ["--token", CANARIES["args"], f"--api-key={CANARIES['inline']}"]
    env = {"API_TOKEN": CANARIES["env"], "OTHER_SECRET": "${env:CANARY_EXPANDED}"}
    with hostile_login() as guarded, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANARY_EXPANDED", CANARIES["expanded"])
        servers = {
            "good": {"command": sys.executable, "args": [str(ECHO), *secret_args], "env": env},
            "telltale": {"command": sys.executable, "args": ["-c", TELLTALE, *secret_args], "env": env},
            "remote": {
                "url": f"http://me:{CANARIES['user']}@127.0.0.1:9/mcp?api_key={CANARIES['query']}",
                "headers": {"Authorization": f"Bearer {CANARIES['header']}", "X-Auth-Token": CANARIES["header"]},
            },
            "guarded": {
                "url": f"{guarded.origin}/mcp?api_key={CANARIES['query']}",
                "oauth": {"client_id": "me", "client_secret": CANARIES["oauth"]},
            },
        }
        with Proxy(tmp_path_factory.mktemp("secrets"), servers, log_level="debug") as proxy:
            guarded.endpoint = "javascript:alert(1)"
            proxy.start("--log-level", "debug").await_ready("good")
            asking = Asking(proxy)
            for name, sign in (("telltale", "logs"), ("remote", "reason"), ("guarded", "reason")):
                eventually(lambda name=name: asking.api("GET", f"servers/{name}").get("reason"), f"{name} has {sign}")  # type: ignore[misc]
            leave_traces(asking)
            yield asking


def leave_traces(operator: Asking) -> None:
    """Say every secret in every place where an agent or an operator could say it."""
    everything = " ".join(CANARIES.values())
    for arguments in (
        {"name": "good:line", "args": {"text": everything}, "intent": {"reason": everything}},
        {"name": f"good:{CANARIES['env']}"},
        {"name": f"{CANARIES['args']}:x"},
        {"name": "remote:x", "args_json": f'{{"broken": "{everything}"'},
    ):
        operator.agent("call_tool_read", arguments)
    operator.agent("retrieve_tools", {"query": everything})
    for name in ("good", "telltale", "remote", "guarded"):
        operator.ask("POST", f"{API}/servers/{name}/restart")
    operator.ask("POST", f"{API}/servers/guarded/login")
    operator.ask("POST", f"{API}/config/validate", json={"mcpServers": [{"name": "x", "url": f"ftp://{everything}"}]})
    operator.ask("PATCH", f"{API}/servers/good", json={"working_dir": "/tmp"})
    operator.proxy.await_ready("good", times=2)


def clean(what: str, shown: str | bytes, *, key: bool = True) -> None:
    """Fail where a secret is in there."""
    text = shown.decode("latin-1") if isinstance(shown, bytes) else shown
    found = [place for place, canary in CANARIES.items() if canary in text]
    at = min((text.index(CANARIES[place]) for place in found), default=0)
    assert not found, (what, found, text[max(0, at - 200) : at + 100])
    assert not key or KEY not in text, what


def test_no_surface_shows_a_secret(operator: Asking) -> None:
    proxy = operator.proxy
    for path in READS:
        answer = operator.ask("GET", f"{API}/{path}")
        assert answer.status_code == 200, path
        clean(path, answer.text)
    clean("metrics", operator.ask("GET", "/metrics").text)
    for command, form in zip(COMMANDS, itertools.cycle(("table", "json")), strict=False):
        told = run(proxy.home, *command.split(), "-o", form, "--config", proxy.config, "--data-dir", proxy.data)
        assert told.returncode in (0, 1), (command, told.stderr)
        clean(command, told.stdout + told.stderr)
    clean("log", proxy.stdout + proxy.stderr)
    kept = [file for file in proxy.data.rglob("*") if file.is_file()]
    assert {"mcpproxy.db"} < {file.name for file in kept}
    for file in kept:
        clean(file.name, file.read_bytes())


def test_no_page_shows_a_secret(operator: Asking) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{operator.proxy.port}", timeout=60, trust_env=False) as browser:
        assert browser.post("/ui/login", data={"key": KEY}).status_code == 303
        records = operator.api("GET", "activity?limit=1000")["activities"]
        shown = [*PAGES, *(f"/ui/activity/record?id={record['id']}" for record in records)]
        for path in shown:
            answer = browser.get(path)
            assert answer.status_code == 200, path
            clean(path, answer.text)


def test_no_event_tells_a_secret(operator: Asking) -> None:
    records = operator.api("GET", "activity?limit=1000")["activities"]
    headers = {"X-API-Key": KEY, "Last-Event-ID": records[-1]["id"]}
    url = f"http://127.0.0.1:{operator.proxy.port}{API}/events"
    with httpx2.Client(timeout=60, trust_env=False) as client, client.stream("GET", url, headers=headers) as stream:
        told = 0
        for line in stream.iter_lines():
            clean("events", line)
            told += line.startswith("event: activity")
            if told == len(records) - 1:
                break


def test_the_masks_are_there_to_be_seen(operator: Asking) -> None:
    """Else all of this would pass for a proxy that shows nothing at all."""
    shown = {server["name"]: server["config"] for server in operator.api("GET", "servers")["servers"]}
    assert shown["good"]["env"]["API_TOKEN"] == "***"
    assert shown["good"]["args"][1:] == ["--token", "***", "--api-key=***"]
    assert shown["remote"]["headers"]["Authorization"] == "Bearer ***"
    assert shown["guarded"]["oauth"]["client_secret"] == "***"
    assert any(
        re.search(r"API_TOKEN.{0,5}\*\*\*", line) for line in operator.api("GET", "servers/telltale/logs")["lines"]
    )
    assert Path(operator.proxy.config).read_text().count(CANARIES["env"]) == 2
