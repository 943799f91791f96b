"""The proxy as a user runs it: its own process, installed without the tests' extras, with upstreams as asked for."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.calls.peers import CONSOLE, install_mcpproxy
from bench.calls.processes import Tree
from bench.calls.run import Failed, Target, await_port, free_port, started
from mcpproxy.storage.engine import open_storage

KEY = "0" * 64
PATIENCE = 300.0


class Proxy(Struct):
    """One that runs and has reached all of its upstreams."""

    port: int
    tree: Tree
    data: Path
    ready_after: float
    """Seconds from its start until every upstream was ready."""

    def target(self, params: Mapping[str, Any], method: str = "tools/call", sign: str = "xxxxxxxx") -> Target:
        """One request to it, for the load."""
        url = f"http://127.0.0.1:{self.port}/mcp"
        asked = ["--url", url, "--method", method, "--params", json.dumps(params), "--sign", sign]
        return Target("mcpproxy", asked, [], self.tree)

    def get(self, path: str) -> bytes:
        """What REST answers to the operator."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", f"/api/v1{path}", headers={"X-API-Key": KEY})
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise Failed(body[:300].decode(errors="replace"))
        return body


@contextlib.contextmanager
def proxy(servers: Mapping[str, Any], data: Path | None = None, **settings: Any) -> Iterator[Proxy]:
    """Run it with these servers, on this data directory or a fresh one."""
    install_mcpproxy()
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        port = free_port()
        config = scratch / "config.json"
        known = {"listen": f"127.0.0.1:{port}", "api_key": KEY, "mcpServers": dict(servers), **settings}
        config.write_text(json.dumps(known))
        config.chmod(0o600)
        data = data or scratch / "data"
        open_storage("sqlite", data).close()  # the very first start also makes the tables; any other does not
        command = [str(CONSOLE), "serve", "--config", str(config), "--data-dir", str(data)]
        log = scratch / "log"
        with log.open("wb") as out, started(command, out, {**os.environ, "HOME": folder}) as process:
            began = time.perf_counter()
            await_port(process, port, log)
            _await_ready(log, servers)
            yield Proxy(port, Tree(process.pid), data, time.perf_counter() - began)


def _await_ready(log: Path, servers: Mapping[str, Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while log.read_text(errors="replace").count(" is ready\n") < len(servers):
        if time.monotonic() > deadline:
            raise Failed(f"not all upstreams became ready: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.02)
