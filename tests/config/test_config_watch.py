"""The running configuration follows the file, and survives a broken one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from mcpproxy.config.errors import ConfigAccessError, ConfigError
from mcpproxy.config.load import Loaded, load
from mcpproxy.config.models import Server
from mcpproxy.config.watch import Reload, Watch
from mcpproxy.config.write import set_server, update

Event = Reload | ConfigError | ConfigAccessError
pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mcp_config.json"
    path.write_text('{"tools_limit": 1}')
    path.chmod(0o600)
    return path


class Events:
    """What the watch reported, in order."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue()

    async def put(self, event: Event) -> None:
        await self._queue.put(event)

    async def reload(self) -> Reload:
        event = await asyncio.wait_for(self._queue.get(), 10)
        assert isinstance(event, Reload), event
        return event

    async def error(self) -> ConfigError | ConfigAccessError:
        event = await asyncio.wait_for(self._queue.get(), 10)
        assert not isinstance(event, Reload), event
        return event

    async def nothing(self, looks: int = 10) -> None:
        await asyncio.sleep(0.02 * looks)
        assert self._queue.empty(), self._queue.get_nowait()


@asynccontextmanager
async def watched(current: Loaded) -> AsyncIterator[Events]:
    events = Events()
    task = asyncio.create_task(Watch(current, events.put, events.put, env={}, interval=0.02).run())
    try:
        yield events
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_change_is_loaded_with_what_differs(path: Path) -> None:
    async with watched(load(path, {})) as events:
        path.write_text('{"tools_limit": 2, "listen": "127.0.0.1:1"}')
        event = await events.reload()
    assert event.loaded.config.tools_limit == 2
    assert event.changes.settings == ("listen", "tools_limit")
    assert event.changes.restart == ("listen",)
    assert not event.recovered


async def test_a_replaced_file_is_followed(path: Path) -> None:
    async with watched(load(path, {})) as events:
        for limit in (2, 3):
            update(path, lambda document, limit=limit: document.update(tools_limit=limit))  # type: ignore[misc]
            assert (await events.reload()).loaded.config.tools_limit == limit


async def test_adding_one_server_touches_that_server_alone(path: Path) -> None:
    path.write_text('{"mcpServers": [{"name": "a", "command": "x"}]}')
    async with watched(load(path, {})) as events:
        update(path, lambda document: set_server(document, Server(name="b", command="y")))
        changes = (await events.reload()).changes
    assert [server.name for server in changes.added] == ["b"]
    assert not (changes.changed or changes.removed or changes.settings)


async def test_a_file_that_does_not_load_is_reported_once_and_its_recovery_too(path: Path) -> None:
    async with watched(load(path, {})) as events:
        path.write_text('{"tools_limit": 1000}')
        assert "tools_limit: 1000 is not allowed" in str(await events.error())
        path.write_text('{ "tools_limit": 1000}')
        await events.nothing()
        path.write_text('{"tools_limit": 1')
        assert "line 1" in str(await events.error())
        path.write_text('{"tools_limit": 5}')
        event = await events.reload()
    assert event.recovered
    assert event.changes.settings == ("tools_limit",)


async def test_going_back_to_the_same_content_is_a_recovery_without_changes(path: Path) -> None:
    async with watched(load(path, {})) as events:
        path.write_text("")
        await events.error()
        path.write_text('{"tools_limit": 1}')
        event = await events.reload()
    assert event.recovered and not event.changes


async def test_a_deleted_file_is_reported_and_followed_when_it_comes_back(path: Path) -> None:
    async with watched(load(path, {})) as events:
        path.unlink()
        assert "there is no such file" in str(await events.error())
        path.write_text('{"tools_limit": 4}')
        event = await events.reload()
    assert event.recovered and event.loaded.config.tools_limit == 4


async def test_the_whole_directory_may_go_and_come_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = home / "c.json"
    path.write_text("{}")
    async with watched(load(path, {})) as events:
        path.unlink()
        home.rmdir()
        await events.error()
        home.mkdir()
        path.write_text('{"tools_limit": 4}')
        assert (await events.reload()).recovered


async def test_a_link_that_is_pointed_elsewhere_is_followed(tmp_path: Path) -> None:
    for name, limit in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.json").write_text(json.dumps({"tools_limit": limit}))
    current = tmp_path / "current"
    current.symlink_to(tmp_path / "one")
    async with watched(load(current / "c.json", {})) as events:
        spare = tmp_path / "spare"
        spare.symlink_to(tmp_path / "two")
        spare.replace(current)
        assert (await events.reload()).loaded.config.tools_limit == 2


async def test_a_file_written_in_steps_is_read_once_when_it_rests(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = iter([(1,), (2,), (3,)])
    reads: list[Path] = []

    def count(path: Path, env: Mapping[str, str]) -> Loaded:
        reads.append(path)
        return load(path, env)

    monkeypatch.setattr("mcpproxy.config.watch._signature", lambda _path: next(steps, (3,)))
    monkeypatch.setattr("mcpproxy.config.watch.load", count)
    current = load(path, {})
    path.write_text('{"tools_limit": 9}')
    async with watched(current) as events:
        assert (await events.reload()).loaded.config.tools_limit == 9
        await events.nothing()
    assert len(reads) == 1


async def test_a_touch_or_another_file_is_no_change(path: Path) -> None:
    async with watched(load(path, {})) as events:
        path.touch()
        (path.parent / "activity.db").write_text("x")
        await events.nothing()


async def test_a_change_between_loading_and_watching_is_not_missed(path: Path) -> None:
    current = load(path, {})
    path.write_text('{"tools_limit": 6}')
    async with watched(current) as events:
        assert (await events.reload()).loaded.config.tools_limit == 6


async def test_a_key_that_leaves_the_file_stays_in_force(path: Path) -> None:
    path.write_text('{"api_key": "the-running-key"}')
    async with watched(load(path, {})) as events:
        path.write_text('{"tools_limit": 3}')
        event = await events.reload()
    assert event.loaded.config.api_key == "the-running-key"
    assert event.changes.settings == ("tools_limit",)
    assert "api_key is gone from the file" in event.loaded.warnings[-1]


async def test_a_listener_that_fails_does_not_end_the_watch(path: Path) -> None:
    told = asyncio.Event()

    async def fail(_event: Event) -> None:
        told.set()
        raise RuntimeError("listener")

    task = asyncio.create_task(Watch(load(path, {}), fail, fail, env={}, interval=0.02).run())
    for limit in (2, 3):
        told.clear()
        path.write_text(json.dumps({"tools_limit": limit}))
        await asyncio.wait_for(told.wait(), 10)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
