"""How is a database damaged, and what does a user see of it? A real proxy, and its files under the knife."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.journeys.support import KEY, PATIENCE, Proxy, run, tiny

PAGE = 4096
_HOLD = (
    "import sqlite3, sys\n"
    "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    "connection.execute('BEGIN IMMEDIATE')\n"
    "print('held', flush=True)\n"
    "sys.stdin.read()\n"
)


class Answer(NamedTuple):
    """What a call came to."""

    status: int
    code: str
    message: str


def new_proxy(home: Path, data: Path | None = None, **settings: Any) -> Proxy:
    """A proxy in front of one tiny server; with a copy of this data directory, where one is given."""
    proxy = Proxy(home, {"tiny": tiny()}, **settings)
    if data is not None:
        shutil.copytree(data, proxy.data)
    return proxy


def database(proxy: Proxy) -> Path:
    """Its database."""
    return proxy.data / "mcpproxy.db"


def call(proxy: Proxy, text: str = "hello", *, variant: str = "read", request_id: str = "a-call") -> Answer:
    """Call the server's tool over REST."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=PATIENCE)
    body = json.dumps({"name": "tiny:echo", "variant": variant, "arguments": {"text": text}})
    headers = {"X-API-Key": KEY, "Content-Type": "application/json", "X-Request-Id": request_id}
    try:
        connection.request("POST", "/api/v1/tools/call", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    finally:
        connection.close()
    error = answer.get("error") or {"code": "", "message": ""}
    return Answer(response.status, error["code"], error["message"])


def command(proxy: Proxy, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the proxy's configuration and data."""
    done = run(proxy.home, "--config", proxy.config, "--data-dir", proxy.data, *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def findings(proxy: Proxy, *words: str) -> dict[str, dict[str, Any]]:
    """What the doctor finds, by area; of several in one area, the worst."""
    done = command(proxy, "doctor", *words, "-o", "json")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)["findings"]
    return {each["area"]: each for each in sorted(found, key=lambda each: str(each["level"]) == "broken")}


def problems(proxy: Proxy) -> list[dict[str, Any]]:
    """What `activity verify` finds; nothing where all is well."""
    done = command(proxy, "activity", "verify", "-o", "json")
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is (done.returncode == 0)
    found: list[dict[str, Any]] = report["problems"]
    return found


def refuses_to_start(proxy: Proxy) -> tuple[int, str]:
    """The exit code and the words of a start that must fail."""
    done = command(proxy, "serve")
    assert done.returncode != 0
    return done.returncode, done.stderr


def flip(path: Path, at: int) -> None:
    """Change one byte."""
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0x55]))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process that holds the database for as long as the block lasts."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.stdin.close()
