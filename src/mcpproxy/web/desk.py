"""What do the pages lean on? The rooms they read, the REST face they change things by, and the frame around each."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

import mcpproxy
from mcpproxy.activity.pace import Pacer, Slow, slowest
from mcpproxy.api.services import Turns
from mcpproxy.web import words
from mcpproxy.web.decisions import Decision, Schemas, decisions
from mcpproxy.web.render import html, url

if TYPE_CHECKING:
    from starlette.requests import Request

    from mcpproxy.activity.pace import Pace
    from mcpproxy.api.services import Services
    from mcpproxy.upstream.server import Upstream
    from mcpproxy.web.rest import Rest

Kept = TypeVar("Kept")

_FRESH_SECONDS: Final = 3.0


class Desk:
    """One dashboard."""

    def __init__(self, rooms: Services, rest: Rest) -> None:
        self.rooms = rooms
        self.rest = rest
        self.schemas = Schemas()
        self.streams = Turns(200, "200 pages are being kept up to date", 30)
        pacer = Pacer(rooms.storage)
        self.pace: Shared[Pace] = Shared(pacer.look)
        self.slowest: Shared[list[Slow]] = Shared(lambda: slowest(rooms.storage))

    def page(self, request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
        """A page within the frame that all of them share."""
        session = request.scope["mcpproxy.session"]
        frame = {
            "path": request.url.path,
            "version": mcpproxy.__version__,
            "csrf": self.rooms.browsers.csrf_token(session) if session is not None else "",
            "done": words.DONE.get(request.query_params.get("done", "")),
            "config_error": self._config_error(),
            "waiting": len(self.decisions()) if session is not None else 0,
            "live": url("/ui/live"),
            "signs": self.signs(context.get("watched", "")) if session is not None else {},
            "problem": None,
        }
        return html(template, frame | context, status)

    def signs(self, watched: str = "") -> dict[str, str]:
        """What tells that a page shows an earlier state: of the servers, and of one server's log."""
        house = self.rooms.house
        upstream = house.pool.get(watched) if watched else None
        servers = (
            tuple((server.name, server.state, server.reason) for server in house.pool),
            len(house.catalog.snapshot.tools),
            tuple(one.hash + one.state for one in house.catalog.snapshot.waiting.values()),
            self.rooms.config_error(),
        )
        return {"servers": _digest(repr(servers)), "log": _digest("\n".join(upstream.log.lines)) if upstream else ""}

    def decisions(self) -> list[Decision]:
        """What waits for the operator."""
        return decisions(self.rooms, self.schemas)

    def upstream(self, name: str) -> Upstream:
        """A server, or the page that says that there is none."""
        found = self.rooms.house.pool.get(name)
        if found is None:
            raise HTTPException(404, f"There is no server named {name[:64]!r}.")
        return found

    def _config_error(self) -> str | None:
        error = self.rooms.config_error()
        return self.rooms.house.mask(error) if error is not None else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def desk_of(request: Request) -> Desk:
    """The dashboard that a request came to."""
    found: Desk = request.app.state.desk
    return found


def see(path: str) -> Response:
    """Send the browser on to another page, after something was done."""
    return RedirectResponse(path, 303)


class Shared(Generic[Kept]):
    """An answer that takes a while to find, found once for all who ask within a few seconds."""

    def __init__(self, find: Callable[[], Kept]) -> None:
        self._find = find
        self._kept: tuple[float, Kept] | None = None
        self._finding = asyncio.Lock()

    async def get(self) -> Kept:
        """The answer, not older than a few seconds."""
        async with self._finding:
            if self._kept is None or time.monotonic() - self._kept[0] > _FRESH_SECONDS:
                self._kept = (time.monotonic(), await asyncio.to_thread(self._find))
            return self._kept[1]
