"""A person asks the running proxy for a link into the dashboard, and a browser gets in by it."""

from __future__ import annotations

import http.client
import json
import os
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from tests.cli.terminal import Home
from tests.journeys.support import Proxy

from mcpproxy.cli.serve import command_to_type


def knock(link: str) -> int:
    """Open a link and confirm it, as a browser does; gives the status."""
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        assert connection.getresponse().read()
        form = urlencode({"code": parts.query.removeprefix("code=")})
        connection.request("POST", parts.path, form, {"Content-Type": "application/x-www-form-urlencoded"})
        return connection.getresponse().status
    finally:
        connection.close()


def listen_of(home: Home) -> str:
    listen: str = json.loads(home.config.read_text())["listen"]
    return listen


def test_the_link_lets_in_once(daemon: Home) -> None:
    done = daemon.run("dashboard")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"http://{listen_of(daemon)}/ui/login?code=")
    assert done.stdout.count("\n") == 1
    assert "once, within five minutes" in done.stderr
    assert [knock(done.stdout.strip()) for _ in range(2)] == [303, 401]


def test_a_program_gets_the_link_as_json(daemon: Home) -> None:
    found = daemon.json("dashboard")
    assert set(found) == {"login_url", "expires_at"}
    assert knock(found["login_url"]) == 303


def test_without_the_socket_it_asks_at_the_address_with_the_key(daemon: Home, tmp_path: Path) -> None:
    elsewhere = Home(daemon.path, daemon.config, tmp_path)
    assert knock(elsewhere.ok("dashboard").strip()) == 303
    refused = elsewhere.run("dashboard", env={"MCPPROXY_API_KEY": "wrong"})
    assert (refused.returncode, refused.stdout) == (5, "")
    assert refused.stderr.startswith("mcpproxy: The key or token is not known")


def test_a_token_in_the_place_of_the_key_gets_no_link(daemon: Home, tmp_path: Path) -> None:
    token = daemon.json("token", "create", "--name", "curious")
    try:
        elsewhere = Home(daemon.path, daemon.config, tmp_path)
        refused = elsewhere.run("dashboard", env={"MCPPROXY_API_KEY": token["token"]})
        assert (refused.returncode, refused.stdout) == (5, "")
        assert "This needs the API key" in refused.stderr
    finally:
        daemon.ok("token", "revoke", token["id"])


def test_without_a_daemon_it_says_so_and_what_to_do(alone: Home) -> None:
    done = alone.run("dashboard")
    assert (done.returncode, done.stdout) == (7, "")
    first, hint = done.stderr.splitlines()
    assert first.startswith("mcpproxy: no mcpproxy daemon is running")
    assert first.endswith("dashboard needs one.")
    assert hint.startswith("Start it with: mcpproxy serve.")
    assert "--data-dir" in hint


@pytest.fixture
def browser(tmp_path: Path) -> Path:
    """A browser that writes down what it is to open, and talks while it does."""
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\necho Opening in an existing session.\n')
    program.chmod(0o755)
    return program


def test_open_hands_the_link_to_the_browser_and_keeps_its_talk_from_the_answer(daemon: Home, browser: Path) -> None:
    done = daemon.run("dashboard", "--open", "-o", "json", env={"BROWSER": str(browser)})
    assert done.returncode == 0, done.stderr
    link = json.loads(done.stdout)["login_url"]
    assert browser.with_name("opened").read_text().strip() == link
    assert knock(link) == 303


def test_where_there_is_no_browser_the_link_is_there_all_the_same(daemon: Home, tmp_path: Path) -> None:
    nothing = {name: "" for name in ("DISPLAY", "WAYLAND_DISPLAY", "TERM", "BROWSER") if name in os.environ}
    done = daemon.run("dashboard", "--open", env={**nothing, "PATH": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr.endswith("mcpproxy: no browser could be opened from here.\nOpen the link yourself.\n")
    assert knock(done.stdout.strip()) == 303


def test_a_browser_that_is_no_command_line_is_no_browser(daemon: Home) -> None:
    done = daemon.run("dashboard", "--open", env={"BROWSER": "firefox '%s"})
    assert done.returncode == 1
    assert done.stderr.endswith("mcpproxy: no browser could be opened from here.\nOpen the link yourself.\n")
    assert knock(done.stdout.strip()) == 303


def test_a_proxy_that_listens_everywhere_gives_a_link_that_opens_here(tmp_path: Path) -> None:
    with Proxy(tmp_path, log_level="debug") as proxy:
        proxy.start("--listen", f"0.0.0.0:{proxy.port}")
        link = Home(tmp_path, proxy.config, proxy.data).ok("dashboard").strip()
        assert link.startswith(f"http://127.0.0.1:{proxy.port}/ui/login?code=")
        assert knock(link) == 303
        proxy.stop()
        assert "mcpproxy dashboard" in proxy.stdout
        # Neither what it logs, with all there is to log, nor the database has ever seen the code.
        code = link.partition("code=")[2].encode()
        left = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {"stderr", "stdout", "mcpproxy.db"} <= {path.name for path in left}
        assert [path for path in left if code in path.read_bytes()] == []


def test_the_start_names_the_command_in_a_way_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert command_to_type() == "mcpproxy"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Path(command_to_type()).samefile(Path(sys.executable).with_name("mcpproxy"))
