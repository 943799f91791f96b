"""A whole proxy in this process, on a real port, in front of real child processes."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcpproxy.app import App
from mcpproxy.config.load import load
from mcpproxy.config.mask import Masker
from mcpproxy.config.write import with_api_key
from mcpproxy.listen import HostCheck, address_of, open_socket, serve_http

ECHO = Path(__file__).with_name("echo_server.py")
KEY = "0123456789abcdef" * 4


def echo(name: str = "echo", heard: Path | None = None, **more: Any) -> dict[str, Any]:
    """The configuration of one echo server."""
    env = {"HEARD": str(heard)} if heard is not None else {}
    return {"name": name, "command": sys.executable, "args": [str(ECHO)], "env": env, **more}


class Proxy:
    """A running proxy and where to reach it."""

    def __init__(self, app: App, url: str, path: Path) -> None:
        self.app = app
        self.url = url
        self.mcp = f"{url}/mcp"
        self.path = path

    def rewrite(self, **changes: Any) -> None:
        """Change the configuration file, as an operator would."""
        document = json.loads(self.path.read_text())
        document.update(changes)
        self.path.write_text(json.dumps(document))


@contextlib.asynccontextmanager
async def running(home: Path, servers: list[dict[str, Any]] | None = None, **settings: Any) -> AsyncIterator[Proxy]:
    """Run a proxy with these servers and settings until the block ends; every server has been tried by then."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / "mcp_config.json"
    document = {"listen": "127.0.0.1:0", "api_key": KEY, "mcpServers": servers or [], **settings}
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    loaded = with_api_key(load(path, {}), {})
    listening = open_socket("127.0.0.1:0")
    address = address_of(listening)
    async with App(loaded, home, Masker(), address=address).running() as app:
        stopping = asyncio.Event()
        check = HostCheck(app, lambda: app.config)
        serving = asyncio.create_task(serve_http(check, [listening], lambda: 0, stopping))
        async with asyncio.timeout(30):
            while not app.pool.settled:
                await asyncio.sleep(0.02)
        try:
            yield Proxy(app, address, path)
        finally:
            stopping.set()
            await serving
