"""How does a journey run the real thing? It starts the installed `mcpproxy` as a user would, and looks from outside.

Every proxy gets a home directory of its own. Upstream children inherit HOME, so it also marks all that descends from
one proxy: `marked` finds whatever is left of it, wherever it ended up in the process tree.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

CONSOLE = Path(sys.executable).with_name("mcpproxy")
TINY = Path(__file__).with_name("tiny_server.py")
PATIENCE = 60.0
"""How long anything may take before a journey gives up; far above what it takes, so that a busy machine passes."""

KEY = "journey-" + "0" * 56

Spec = dict[str, Any]
T = TypeVar("T")


def tiny(*options: str) -> Spec:
    """A configuration entry for the smallest stdio server."""
    return {"command": sys.executable, "args": ["-I", "-S", str(TINY), *options]}


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def alive_at(port: int) -> bool:
    """Whether somebody takes connections on a local port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def eventually(look: Callable[[], T], what: str, patience: float = PATIENCE) -> T:
    """Look again until there is something true to see, and return it."""
    deadline = time.monotonic() + patience
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {patience:g} s it is still not so: {what}")
        time.sleep(0.02)
    return seen


def environment(home: Path) -> dict[str, str]:
    """What a user's shell would hand over, with another home and without settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCPPROXY_", "PYTEST_"))}
    scratch = home / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    return {**kept, "HOME": str(home), "TMPDIR": str(scratch)}


def run(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the installed `mcpproxy` to its end, with a plain user's rights."""
    return subprocess.run(
        [CONSOLE, *arguments],
        env=environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=_heed_permissions,
    )


def _heed_permissions() -> None:
    """Even root is refused what a file's mode forbids, so that permissions can be tested in a container."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: gone with the exec that follows


def marked(home: Path) -> list[psutil.Process]:
    """Every living process that was started with this home."""
    return [process for process in psutil.process_iter() if _home_of(process) == str(home)]


def _home_of(process: psutil.Process) -> str | None:
    with contextlib.suppress(psutil.Error, OSError):
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.environ().get("HOME")
    return None


def alive(process: psutil.Process) -> bool:
    """Whether a process still runs; one that only waits to be collected does not."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


class Proxy:
    """`mcpproxy serve` in a process of its own. `start` it, and `stop` or `kill` it; both may be done again."""

    plain_user = True
    """With a plain user's rights even where root runs the tests; PostgreSQL's socket needs more there."""

    def __init__(self, home: Path, servers: Mapping[str, Spec] | None = None, **settings: Any) -> None:
        self.home = home
        self.port = free_port()
        self.config = home / "mcp_config.json"
        self.data = home / "data"
        self._settings = {"listen": f"127.0.0.1:{self.port}", "api_key": KEY, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(parents=True, exist_ok=True)
        self.configure(servers or {})

    def configure(self, servers: Mapping[str, Spec]) -> None:
        """Write the configuration file as a careful editor does: whole, and in one step."""
        self.write(json.dumps({**self._settings, "mcpServers": servers}, indent=2))

    def write(self, text: str) -> None:
        """Put this text in the place of the configuration file."""
        new = self.config.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o600)
        new.replace(self.config)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()
        for left in marked(self.home):
            left.kill()

    def start(self, *options: str) -> Proxy:
        """Start it on its configuration and wait until it answers."""
        return self.launch("--config", str(self.config), "--data-dir", str(self.data), *options)

    def launch(self, *options: str) -> Proxy:
        """Start it with exactly these options and wait until it answers on its port."""
        with (self.home / "stdout").open("ab") as out, (self.home / "stderr").open("ab") as err:
            self._process = subprocess.Popen(
                [CONSOLE, "serve", *options],
                env=environment(self.home),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                preexec_fn=_heed_permissions if self.plain_user else None,  # noqa: PLW1509 - it runs alone there
            )
        eventually(self._answers, "the proxy answers on /healthz")
        return self

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"mcpproxy ended with {self.process.returncode}: {self.stderr}")
        with contextlib.suppress(OSError):
            return self.get("/healthz")[0] == 200
        return False

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        assert self._process is not None
        return self._process

    @property
    def url(self) -> str:
        """Where agents connect."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def stdout(self) -> str:
        """Everything it printed so far, over all its starts."""
        return (self.home / "stdout").read_text()

    @property
    def stderr(self) -> str:
        """Everything it logged so far, over all its starts."""
        return (self.home / "stderr").read_text()

    def get(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> tuple[int, str]:
        """Ask for a path, with the headers exactly as given; a Host among them replaces the true one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.putrequest(method, path, skip_host=any(name.lower() == "host" for name in headers or {}))
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def api(self, path: str) -> Any:
        """What the REST face answers to a GET by the holder of the key."""
        status, body = self.get(f"/api/v1{path}", {"X-API-Key": KEY})
        assert status == 200, body
        return json.loads(body)["data"]

    def times_ready(self, server: str) -> int:
        """How often a server became ready so far."""
        return self.stderr.count(f"server {server!r} is ready\n")

    def await_ready(self, *servers: str, times: int = 1) -> None:
        """Wait until each of these became ready so often."""
        self.await_so(lambda: all(self.times_ready(name) >= times for name in servers), f"{servers} are ready")

    def await_log(self, pattern: str) -> str:
        """Wait for a log line that matches, and return it."""
        line = re.compile(f"^.*(?:{pattern}).*$", re.MULTILINE)
        found = self.await_so(lambda: line.search(self.stderr), f"{pattern!r} is logged")
        assert found is not None
        return found[0]

    def await_so(self, look: Callable[[], T], what: str) -> T:
        """Wait until there is something true to see; the log stands in the error where there never is."""
        try:
            return eventually(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.stderr}") from None

    def definitions(self, server: str) -> list[dict[str, Any]]:
        """The tool definitions that it keeps of a server, as the server wrote them."""
        database = sqlite3.connect(f"file:{self.data / 'mcpproxy.db'}?mode=ro", uri=True)
        with contextlib.closing(database):
            rows = database.execute("SELECT listing FROM tool_lists WHERE server = ?", (server,)).fetchall()
        return [json.loads(text) for (listing,) in rows for text in json.loads(listing)["definitions"]]

    def children(self) -> list[psutil.Process]:
        """Everything it started and what those started, the reaper included."""
        return [child for child in psutil.Process(self.process.pid).children(recursive=True) if alive(child)]

    def child(self, sign: str) -> psutil.Process:
        """Its one descendant with this text in the command line."""
        (found,) = [process for process in self.children() if sign in " ".join(process.cmdline())]
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE)

    def kill(self) -> None:
        """End it without giving it a chance to do anything about it."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE)


@contextlib.contextmanager
def serving(home: Path, servers: Mapping[str, Spec] | None = None, **settings: Any) -> Iterator[Proxy]:
    """A proxy that runs for as long as the block lasts, and of which nothing is left afterwards."""
    with Proxy(home, servers, **settings) as proxy:
        yield proxy.start()
