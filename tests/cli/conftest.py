"""What the tests of the command line share: one daemon for each worker, and a home without one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.calls.proxy import echo
from tests.cli.terminal import Home
from tests.journeys.support import KEY, Proxy, free_port


def servers() -> dict[str, dict[str, Any]]:
    """A server that answers as it is told to, and the demo."""
    entry = echo()
    del entry["name"]
    return {"echo": entry, "demo": {"command": sys.executable, "args": ["-m", "mcpproxy.demo"]}}


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in which the daemon runs, with `echo` and `demo`; tests add to it, and take away only their own."""
    home = tmp_path_factory.mktemp("d")
    with Proxy(home, servers()) as proxy:
        proxy.start()
        proxy.await_ready("echo", "demo")
        yield Home(home, proxy.config, proxy.data)


@pytest.fixture
def alone(tmp_path: Path) -> Home:
    """A home with the same servers, in which no daemon runs."""
    return make_home(tmp_path, servers())


def make_home(home: Path, entries: dict[str, Any] | None = None, **settings: Any) -> Home:
    """A home with this configuration."""
    config = home / "mcp_config.json"
    listen = f"127.0.0.1:{free_port()}"
    config.write_text(json.dumps({"listen": listen, "api_key": KEY, **settings, "mcpServers": entries or {}}, indent=2))
    config.chmod(0o600)
    data = home / "data"
    data.mkdir(mode=0o700)
    return Home(home, config, data)
