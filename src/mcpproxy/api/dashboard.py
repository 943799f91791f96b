"""`/dashboard`: how does the operator's browser get in? By a link that whoever has the key may ask for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from mcpproxy.access.browser import LINK_SECONDS, login_link
from mcpproxy.api.envelope import ApiError, Ok, ok
from mcpproxy.api.services import Rooms, identity

router = APIRouter(prefix="/dashboard", tags=["dashboard"])


class LoginLink(BaseModel):
    """A link for a person to open. It lets one browser in, once."""

    login_url: str = Field(examples=["http://127.0.0.1:8080/ui/login?code=…"])
    expires_at: datetime


@router.post("/login", response_model=Ok[LoginLink])
async def invite_browser(request: Request, rooms: Rooms) -> dict[str, Any]:
    """Make a link that lets one browser in, once and within five minutes. This answer is the only place that has it."""
    if identity(request).browser:
        # Or a session could go on for ever, and be there again after it was logged out.
        raise ApiError(403, "This needs the API key: a browser's session opens no other.")
    until = datetime.now(UTC) + timedelta(seconds=LINK_SECONDS)
    return ok(request, LoginLink(login_url=login_link(rooms.address, rooms.browsers.invite()), expires_at=until))
