"""Do many servers at once get in each other's way? They start side by side, a bounded number at a time."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.journeys.support import Spec, serving, tiny

from mcpproxy.app import STARTING_AT_ONCE

COUNT = 20

# Notes when it starts and when it has shaken hands; in between it dawdles.
_NOTING = """
import runpy, sys, time
log, *sys.argv[1:] = sys.argv[1:]
def note(what):
    with open(log, "a") as file:
        file.write(f"{what} {time.monotonic()}\\n")
note("+")
real = sys.stdout.write
def write(text):
    if '"tools"' in text and '"name": "echo"' in text:
        note("-")
    return real(text)
sys.stdout.write = write
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def noting(log: Path) -> Spec:
    spec = tiny("--slow", "0.2")
    script = spec["args"][2]
    return {"command": sys.executable, "args": ["-I", "-S", "-c", _NOTING, str(log), script, "--slow", "0.2"]}


def test_servers_start_side_by_side_and_not_all_at_once(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    names = [f"server{number}" for number in range(COUNT)]
    with serving(tmp_path / "home", {name: noting(log) for name in names}) as proxy:
        proxy.await_ready(*names)
        assert {server["state"] for server in proxy.api("/servers")["servers"]} == {"ready"}
        assert proxy.api("/status")["servers"] == {"total": COUNT, "ready": COUNT}
    events = sorted((float(at), 1 if sign == "+" else -1) for sign, at in map(str.split, log.read_text().splitlines()))
    starting = [sum(step for _, step in events[: position + 1]) for position in range(len(events))]
    assert len(events) == 2 * COUNT
    assert 1 < max(starting) <= STARTING_AT_ONCE


def test_one_server_that_never_answers_holds_up_nobody(tmp_path: Path) -> None:
    names = [f"server{number}" for number in range(STARTING_AT_ONCE + 2)]
    mute = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    servers = {**{f"mute{number}": mute for number in range(STARTING_AT_ONCE)}, **{name: tiny() for name in names}}
    with serving(tmp_path / "home", servers, call_tool_timeout="5m") as proxy:
        proxy.await_ready(*names)
        states = {server["name"]: server["state"] for server in proxy.api("/servers")["servers"]}
        assert {states[name] for name in names} == {"ready"}
        assert {state for name, state in states.items() if name.startswith("mute")} == {"connecting"}
