"""What goes on record about the house itself? Starts and stops, changed settings, servers and tools."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import mcpproxy
from mcpproxy.activity.journal import Journal, RecordFailed
from mcpproxy.activity.record import Record, Source
from mcpproxy.upstream.server import State, Upstream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpproxy.catalog.changes import Change
    from mcpproxy.config.watch import Reload

log = logging.getLogger(__name__)

_GOOD = (State.READY, State.DISABLED, State.QUARANTINED, State.DISCONNECTED)
_WORTH_TELLING = (State.READY, State.NEEDS_LOGIN, State.BACKING_OFF, State.FAILED)
_MAX_WAITING = 1000
_cause: ContextVar[tuple[Source, str | None]] = ContextVar("cause", default=("internal", None))


@contextlib.contextmanager
def caused_by(source: Source, request_id: str) -> Iterator[None]:
    """Say by which request the operator makes the changes of this block."""
    before = _cause.set((source, request_id))
    try:
        yield
    finally:
        _cause.reset(before)


class Chronicle:
    """Writes down what happens without being asked, in order, and holds nobody up for it."""

    def __init__(self, journal: Journal, *, errand: bool = False) -> None:
        self._journal = journal
        self._errand = errand
        self._queue: asyncio.Queue[Record | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._told: dict[str, State] = {}

    async def start(self, metadata: dict[str, Any]) -> None:
        """The proxy is up."""
        self._task = asyncio.create_task(self._run())
        if self._errand:
            return
        self._put(
            Record(
                type="system_start",
                source="internal",
                status="success",
                metadata={"version": mcpproxy.__version__, **metadata},
            )
        )

    async def stop(self) -> None:
        """The proxy goes down; everything said so far is written first."""
        if not self._errand:
            self._put(Record(type="system_stop", source="internal", status="success"))
        self._queue.put_nowait(None)
        if self._task is not None:
            await self._task

    def server_changed(self, upstream: Upstream, before: State) -> None:
        """A server came to another state. Every try of a server that stays away would be noise."""
        if upstream.state not in _WORTH_TELLING or self._told.get(upstream.name) == upstream.state:
            return
        if self._errand and upstream.state in _GOOD:
            return
        self._told[upstream.name] = upstream.state
        self._put(
            Record(
                type="server_change",
                source="internal",
                server_name=upstream.name,
                status="success" if upstream.state in _GOOD else "error",
                error_message=upstream.reason or None,
                metadata={"state": str(upstream.state), "before": str(before)},
            )
        )

    def server_configured(self, name: str, change: str) -> None:
        """The operator added, changed or removed a server."""
        self._told.pop(name, None)
        source, request_id = _cause.get()
        self._put(
            Record(
                type="server_change",
                source=source,
                server_name=name,
                status="success",
                request_id=request_id,
                metadata={"change": change},
            )
        )

    def trust_changed(
        self, changes: Iterable[Change], source: Source = "internal", request_id: str | None = None
    ) -> None:
        """Tools came, changed or went, or somebody decided about them by a request."""
        for change in changes:
            self._put(
                Record(
                    type=change.record_type,
                    source=source,
                    server_name=change.server,
                    status=change.status,
                    request_id=request_id,
                    metadata=change.metadata,
                )
            )

    def config_reloaded(self, reload: Reload) -> None:
        """The operator changed the configuration."""
        changes = reload.changes
        source, request_id = _cause.get()
        self._put(
            Record(
                type="config_change",
                source=source,
                status="success",
                request_id=request_id,
                metadata={
                    "settings": list(changes.settings),
                    "servers_added": [server.name for server in changes.added],
                    "servers_removed": [server.name for server in changes.removed],
                    "servers_changed": [after.name for _, after in changes.changed],
                },
            )
        )

    def config_refused(self, error: str) -> None:
        """The operator changed the configuration into one that does not load."""
        self._put(Record(type="config_change", source="internal", status="error", error_message=error))

    def _put(self, record: Record) -> None:
        if self._queue.qsize() >= _MAX_WAITING:
            log.warning("too much happens to write it all down: a %s record is left out", record.type)
            return
        self._queue.put_nowait(record)

    async def _run(self) -> None:
        while (record := await self._queue.get()) is not None:
            try:
                await self._journal.write(record)
            except RecordFailed as error:
                log.warning("a %s record was not written: %s", record.type, error)
