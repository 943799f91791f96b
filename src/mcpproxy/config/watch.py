"""Has the operator changed the file? Each change is loaded; what does not load leaves the running one in force.

The file is looked at twice a second instead of through the kernel's change events, for a measured reason: the
database lives in the same directory, and directory events cost 12 µs of CPU for every commit of the journal. A look
costs a few µs, and it works alike for a file that is replaced, linked, deleted and put back, or on a network disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec import Struct, structs

from mcpproxy.config.changes import Changes, compare
from mcpproxy.config.errors import ConfigAccessError, ConfigError
from mcpproxy.config.load import Loaded, load

_LOG = logging.getLogger(__name__)
_KEPT_KEY = "api_key is gone from the file; the running one stays in force until the next start"


class Reload(Struct, frozen=True, kw_only=True):
    """The file changed and loads."""

    loaded: Loaded
    changes: Changes
    recovered: bool
    """Whether it did not load before."""


class Watch:
    """Follows one file. `run` lasts until it is cancelled."""

    def __init__(
        self,
        current: Loaded,
        on_reload: Callable[[Reload], Awaitable[None]],
        on_error: Callable[[ConfigError | ConfigAccessError], Awaitable[None]],
        *,
        env: Mapping[str, str] = os.environ,
        interval: float = 0.5,
    ) -> None:
        self._current = current
        self._on_reload = on_reload
        self._on_error = on_error
        self._env = env
        self._interval = interval
        self._failure: str | None = None
        self._judging = asyncio.Lock()

    async def look(self) -> None:
        """Load the file now rather than in a moment; returns once a change has been dealt with."""
        await self._judge()

    async def run(self) -> None:
        """Look, load and report, for ever."""
        # Nothing is taken as seen yet, so a change between loading and watching is not missed.
        seen: tuple[int, ...] | None = None
        while True:
            now = await asyncio.to_thread(_signature, self._current.path)
            if now != seen:
                seen = await self._settled(now)
                await self._judge()
            await asyncio.sleep(self._interval)

    async def _settled(self, signature: tuple[int, ...]) -> tuple[int, ...]:
        """Wait until the file stays as it is for a moment: an editor may write in several steps."""
        for _ in range(20):
            await asyncio.sleep(self._interval / 5)
            now = await asyncio.to_thread(_signature, self._current.path)
            if now == signature:
                break
            signature = now
        return signature

    async def _judge(self) -> None:
        async with self._judging:
            try:
                new = await asyncio.to_thread(load, self._current.path, self._env)
            except (ConfigError, ConfigAccessError) as error:
                await self._failed(error)
            else:
                await self._loaded(new)

    async def _failed(self, error: ConfigError | ConfigAccessError) -> None:
        if str(error) != self._failure:
            self._failure = str(error)
            await _safely(self._on_error(error))

    async def _loaded(self, new: Loaded) -> None:
        recovered, self._failure = self._failure is not None, None
        if new.digest == self._current.digest and not recovered:
            return
        new = _with_running_key(new, self._current)
        changes = compare(self._current.config, new.config)
        self._current = new
        await _safely(self._on_reload(Reload(loaded=new, changes=changes, recovered=recovered)))


def _with_running_key(new: Loaded, current: Loaded) -> Loaded:
    if new.config.api_key or not current.config.api_key:
        return new
    config = structs.replace(new.config, api_key=current.config.api_key)
    return structs.replace(new, config=config, warnings=(*new.warnings, _KEPT_KEY))


def _signature(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


async def _safely(report: Awaitable[None]) -> None:
    # Whoever is told must not be able to end the watch by failing.
    try:
        await report
    except Exception:
        _LOG.exception("a change of the configuration could not be applied in full")
