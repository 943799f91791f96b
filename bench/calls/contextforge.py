"""How is ContextForge set up? It wants secrets, an administrator, and the upstream by its REST interface."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from secrets import token_hex

PACKAGE = "mcp-contextforge-gateway"
_ADMINISTRATOR = "bench@example.com"


def command(home: Path, port: int) -> list[str]:
    """Its command line, in the environment at `home`."""
    return [str(home / "bin" / "mcpgateway"), "mcpgateway.main:app", "--host", "127.0.0.1", "--port", str(port)]


@cache
def _secret(name: str) -> str:
    return token_hex(32)


def environment(scratch: Path) -> Mapping[str, str]:
    """Its settings: a database of its own, no pages, no limit on calls per minute, this machine as an upstream."""
    return {
        "DATABASE_URL": f"sqlite:///{scratch / 'contextforge.db'}",
        "JWT_SECRET_KEY": _secret("jwt"),
        "AUTH_ENCRYPTION_SECRET": _secret("auth"),
        "PLATFORM_ADMIN_EMAIL": _ADMINISTRATOR,
        "PLATFORM_ADMIN_PASSWORD": _secret("password"),
        "MCPGATEWAY_UI_ENABLED": "false",
        "MCPGATEWAY_ADMIN_API_ENABLED": "false",
        "RATE_LIMITING_ENABLED": "false",
        "TOOL_RATE_LIMIT": "1000000",
        "CACHE_TYPE": "memory",
        "PLUGINS_ENABLED": "false",
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "ENVIRONMENT": "development",
        "LOG_LEVEL": "ERROR",
    }


def prepare(home: Path, port: int, upstream: str, scratch: Path) -> str:
    """Tell it of the upstream; gives a token for callers."""
    make = [str(home / "bin" / "python"), "-m", "mcpgateway.utils.create_jwt_token", "--admin"]
    asked = [*make, "--username", _ADMINISTRATOR, "--exp", "1000", "--secret", _secret("jwt")]
    settings = {**os.environ, **environment(scratch)}
    done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, env=settings)
    token = done.stdout.split()[-1]
    body = json.dumps({"name": "bench", "url": upstream, "transport": "STREAMABLEHTTP"}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/gateways", body, method="POST")
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request, timeout=60).read()
    return token
