"""A person logs in to a server from a terminal, with the daemon and without."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.cli.conftest import make_home
from tests.cli.terminal import Home
from tests.upstream.oauth_server import AuthorizationServer, browse_to_the_end, protected_upstream


def log_in(home: Home, name: str) -> str:
    """Run the command, and be the person with the browser."""
    with home.terminal("upstream", "login", name, width=2000, env={"PYTHON_KEYRING_BACKEND": FAIL}) as terminal:
        terminal.until("Waiting for you")
        link = re.search(r"https?://\S+", terminal.plain)
        assert link is not None
        status, page = asyncio.run(browse_to_the_end(link[0]))
        assert (status, "You are logged in" in page) == (200, True)
        assert terminal.end() == 0, terminal.text
        return terminal.plain


FAIL = "keyring.backends.fail.Keyring"


def test_without_a_daemon_the_browser_comes_back_to_the_command(tmp_path: Path) -> None:
    server = AuthorizationServer()
    with protected_upstream(server) as url:
        home = make_home(tmp_path, {"notes": {"url": url}})
        assert "you are logged in" in log_in(home, "notes")
        result = home.run("call", "tool-read", "notes:greet", env={"PYTHON_KEYRING_BACKEND": FAIL})
        assert result.returncode == 0, result.stderr
        (kept,) = home.data.glob("oauth/*.json")
        assert "you are logged out" in home.ok("upstream", "logout", "notes")
        assert not kept.exists()
        for secret in server.secrets:
            assert secret not in result.stdout + result.stderr


def test_with_the_daemon_the_server_connects_by_itself(daemon: Home) -> None:
    with protected_upstream(AuthorizationServer()) as url:
        added = daemon.json("upstream", "add", "notes", url)
        try:
            assert added["state"] == "needs_login"
            assert "notes is ready" in log_in(daemon, "notes")
            assert "notes is needs_login" in daemon.ok("upstream", "logout", "notes")
        finally:
            daemon.ok("upstream", "remove", "notes")


def test_a_server_that_takes_no_login_says_so(daemon: Home) -> None:
    for command in ("login", "logout"):
        result = daemon.run("upstream", command, "echo")
        assert result.returncode == 1
        assert "not one that is logged in to" in result.stderr


@pytest.mark.parametrize("name", ["nobody"])
def test_an_unknown_server_says_so(daemon: Home, name: str) -> None:
    for command in ("login", "logout"):
        assert daemon.run("upstream", command, name).returncode == 1
