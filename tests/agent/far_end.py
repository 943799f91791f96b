"""What goes on at the proxy's end of a connection? For tests that speak to it in raw bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.agent.segments import Talk
from tests.calls.proxy import Proxy
from tests.faults.clients import connect, rest
from tests.support.children import until

from mcpproxy.agent.http import HttpFace
from mcpproxy.http1 import Connection


class Seen:
    """What the proxy's end saw."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self.size = 0
        self.taken = 0

    @property
    def last(self) -> Connection:
        """The connection that was made last."""
        return self.connections[-1]


def watch(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """See every connection that is made from now on."""
    seen = Seen()
    made, received, release = Connection.connection_made, Connection.data_received, Connection._release
    take = HttpFace.take
    again = False

    def noted_made(self: Connection, transport: asyncio.Transport) -> None:
        seen.connections.append(self)
        made(self, transport)

    def noted_received(self: Connection, data: bytes) -> None:
        seen.size += 0 if again else len(data)
        received(self, data)

    def noted_release(self: Connection) -> None:
        nonlocal again
        again = True
        release(self)
        again = False

    def noted_take(self: HttpFace, *args: Any, **named: Any) -> Any:
        work = take(self, *args, **named)
        seen.taken += work is not None
        return work

    monkeypatch.setattr(Connection, "connection_made", noted_made)
    monkeypatch.setattr(Connection, "data_received", noted_received)
    monkeypatch.setattr(Connection, "_release", noted_release)
    monkeypatch.setattr(HttpFace, "take", noted_take)
    return seen


async def converse(proxy: Proxy, talk: Talk, seen: Seen) -> bytes:
    """All that comes back; each segment is sent once those before it were read, and mostly answered."""
    reader, writer = await connect(proxy.url)
    seen.size = sent = 0
    try:
        for segment in talk.segments[:-1]:
            writer.write(segment)
            sent += len(segment)
            await until(lambda: seen.size >= sent and (talk.taken is None or has_answered(seen.last)), talk.about)  # noqa: B023
        writer.write(talk.segments[-1])
        return await rest(reader)
    finally:
        writer.close()


def has_answered(connection: Connection) -> bool:
    """Whether the proxy owes no answer to what it has got whole."""
    return connection._plain is None and (connection._parsing or connection._is_answered())


def quiet(connection: Connection) -> bool:
    """Whether nothing of a connection is left: no timer, no task, nothing held."""
    timers = (connection._deadline, connection._stalled, connection._waiting, connection.timeout_keep_alive_task)
    return not any(timers) and not connection.tasks and not connection.connections and not connection._held
