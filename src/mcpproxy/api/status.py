"""`/status`: is it running, and with what?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

import mcpproxy
from mcpproxy.activity.journal import JournalStats
from mcpproxy.api.envelope import Ok, ok
from mcpproxy.api.services import Rooms
from mcpproxy.upstream.server import State

router = APIRouter(tags=["status"])


class ServerCounts(BaseModel):
    """How many servers there are, and how many of them answer."""

    total: int
    ready: int


class ConfigStatus(BaseModel):
    """Which configuration is in force; `error` where the file has changed into one that does not load."""

    path: str
    loaded_at: datetime
    error: str | None = None


class ActivityStatus(BaseModel):
    """Only where something is wrong: how many records were lost, and why the last attempt to write one failed."""

    lost: int
    error: str | None = None


class Status(BaseModel):
    """The proxy at a glance."""

    version: str
    listen: str
    started_at: datetime
    servers: ServerCounts
    tools: int
    activity: ActivityStatus | None = None
    config: ConfigStatus


def _ails(journal: JournalStats) -> bool:
    return bool(journal.lost or journal.failure)


@router.get("/status", response_model=Ok[Status], response_model_exclude_none=True)
async def get_status(request: Request, rooms: Rooms) -> dict[str, Any]:
    """The proxy at a glance."""
    loaded = rooms.loaded()
    states = [upstream.state for upstream in rooms.house.pool]
    error = rooms.config_error()
    journal = rooms.house.journal.stats()
    return ok(
        request,
        Status(
            version=mcpproxy.__version__,
            listen=loaded.config.listen,
            started_at=datetime.fromtimestamp(rooms.started_at, UTC),
            servers=ServerCounts(total=len(states), ready=states.count(State.READY)),
            tools=len(rooms.house.catalog.snapshot.tools),
            activity=ActivityStatus(lost=journal.lost, error=journal.failure) if _ails(journal) else None,
            config=ConfigStatus(
                path=str(loaded.path),
                loaded_at=datetime.fromtimestamp(rooms.loaded_at(), UTC),
                error=rooms.house.mask(error) if error is not None else None,
            ),
        ),
    )
