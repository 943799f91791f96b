"""`/events`: what happens, as it happens. A client that comes back goes on where it was."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Header, Request
from fastapi.responses import Response
from sqlalchemy import select

from mcpproxy.activity.follow import Skipped
from mcpproxy.activity.record import Stored
from mcpproxy.activity.tables import activity
from mcpproxy.api.door import identify
from mcpproxy.api.envelope import ApiError, bad_field
from mcpproxy.api.services import MyTurns, Rooms, Services
from mcpproxy.api.stream import TakingTurns
from mcpproxy.asgi import Headers
from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import StorageError

log = logging.getLogger(__name__)

router = APIRouter(tags=["events"])

HEARTBEAT_SECONDS: Final = 15.0
RETRY_MS: Final = 2000
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_BEAT: Final = b": still here\n\n"


@router.get(
    "/events",
    response_class=Response,
    responses={
        200: {
            "description": "`ready` once, then `activity` for each record, with the record's id; `skipped` where "
            "the log no longer has what came after Last-Event-ID",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def follow_events(
    request: Request,
    rooms: Rooms,
    turns: MyTurns,
    last_event_id: Annotated[str | None, Header(description="The id of the last event that was received")] = None,
) -> Response:
    """Every new record as a server-sent event."""
    if last_event_id and not _ULID.fullmatch(last_event_id):
        raise bad_field("Last-Event-ID", "it is not the id of an event")
    # Where it begins is settled, and told, before anything else: a client that loses us at once misses nothing.
    after = last_event_id or await asyncio.to_thread(_newest, rooms.storage)
    return TakingTurns(
        turns.streams,
        _events(request, rooms, after),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _newest(storage: Storage) -> str | None:
    with storage.read() as connection:
        found: str | None = connection.execute(
            select(activity.c.id).order_by(activity.c.seq.desc()).limit(1)
        ).scalar_one_or_none()
    return found


async def _events(request: Request, rooms: Services, after: str | None) -> AsyncGenerator[bytes, None]:
    yield b"retry: %d\n%sevent: ready\ndata: {}\n\n" % (RETRY_MS, b"id: %s\n" % after.encode() if after else b"")
    records = rooms.feed.follow(after)
    stopping = asyncio.create_task(rooms.stopping.wait())
    pending: asyncio.Task[Stored | Skipped] | None = None
    try:
        while not stopping.done() and _still_welcome(request, rooms):
            pending = pending or asyncio.create_task(_next(records))
            await asyncio.wait({pending, stopping}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if pending.done():
                found, pending = pending.result(), None
                yield _event(found)
            elif not stopping.done():
                yield _BEAT
    except StorageError as error:
        log.warning("an event stream ends, since the log cannot be read: %s", error)
    finally:
        stopping.cancel()
        if pending is not None:
            pending.cancel()
            await asyncio.wait({pending})
        await records.aclose()


async def _next(records: AsyncIterator[Stored | Skipped]) -> Stored | Skipped:
    return await anext(records)


def _event(found: Stored | Skipped) -> bytes:
    if isinstance(found, Skipped):
        return b"event: skipped\ndata: %s\n\n" % msgspec.json.encode(found)
    # The record is on one line: no line break survives on its way into the log.
    return b"id: %s\nevent: activity\ndata: %s\n\n" % (found.id.encode(), msgspec.json.encode(found))


def _still_welcome(request: Request, rooms: Services) -> bool:
    """Whether the key that opened the stream is still good."""
    try:
        return identify(rooms, request.scope, Headers(request.scope["headers"])).admin
    except ApiError:
        return False
