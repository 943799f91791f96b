"""The unix socket: private, taken over from the dead, left to the living, and the operator's without a key."""

import asyncio
import logging
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.calls.proxy import KEY

from mcpproxy.app import App
from mcpproxy.config.load import load
from mcpproxy.config.mask import Masker
from mcpproxy.listen import HostCheck, serve_http
from mcpproxy.local import local_socket, socket_path


def test_it_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with local_socket(tmp_path) as opened:
        assert opened is not None
        mode = socket_path(tmp_path).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
    assert not socket_path(tmp_path).exists()


def test_that_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(socket_path(tmp_path)))
    left.close()
    with local_socket(tmp_path) as opened:
        assert opened is not None


def test_that_of_a_living_process_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with local_socket(tmp_path) as first:
        assert first is not None
        with local_socket(tmp_path) as second:
            assert second is None
        assert "another mcpproxy runs" in caplog.text
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(str(socket_path(tmp_path)))


def test_something_else_in_its_place_is_not_touched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    socket_path(tmp_path).write_text("mine")
    with local_socket(tmp_path) as opened:
        assert opened is None
    assert socket_path(tmp_path).read_text() == "mine"
    assert "something else stands there" in caplog.text


def test_a_path_that_is_too_long_is_a_warning_that_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deep = tmp_path / ("d" * 110)
    deep.mkdir()
    with caplog.at_level(logging.WARNING), local_socket(deep) as opened:
        assert opened is None
    assert "use a shorter --data-dir" in caplog.text
    assert "API key instead" in caplog.text


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[App]:
    """A proxy that listens on its unix socket alone."""
    path = home / "mcp_config.json"
    path.write_text(f'{{"api_key": "{KEY}", "require_mcp_auth": true, "mcpServers": []}}')
    path.chmod(0o600)
    app = App(load(path, {}), home, Masker())
    async with app.running():
        with local_socket(home) as opened:
            assert opened is not None
            host_check = HostCheck(app, lambda: app.config)
            serving = asyncio.create_task(serve_http(host_check, [opened], lambda: 0, app.stopping))
            try:
                yield app
            finally:
                app.stopping.set()
                await serving


def test_requests_over_it_are_the_operators_without_a_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path):
            connector = aiohttp.UnixConnector(str(socket_path(tmp_path)))
            async with aiohttp.ClientSession(connector=connector) as client:
                for host in ("localhost", "anything.example"):
                    async with client.get("http://x/api/v1/servers", headers={"Host": host}) as answer:
                        assert answer.status == 200
                async with client.post("http://x/api/v1/tokens", json={"name": "ci"}) as answer:
                    assert answer.status == 201
                    token = (await answer.json())["data"]["token"]
                async with client.get("http://x/metrics") as answer:
                    assert answer.status == 200
                async with client.get("http://x/api/v1/servers", headers={"X-API-Key": "wrong"}) as answer:
                    assert answer.status == 401
                async with client.get("http://x/api/v1/servers", headers={"X-API-Key": token}) as answer:
                    assert answer.status == 403
                async with client.post("http://x/mcp", json={}) as answer:
                    assert answer.status == 400  # let in, and not understood

    asyncio.run(main())
