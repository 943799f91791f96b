"""`/ui/live`: what is new on this page? Rows of records as HTML, and a word when servers, calls or a log have changed.

A page that is busy gets its rows in batches, a few times a second: a person cannot read faster.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from mcpproxy.activity.filters import BadFilter, Filter
from mcpproxy.activity.follow import Skipped
from mcpproxy.activity.prepare import derived
from mcpproxy.activity.words import query_words
from mcpproxy.api.stream import TakingTurns
from mcpproxy.storage.errors import StorageError
from mcpproxy.web.activity import asked
from mcpproxy.web.desk import Desk, desk_of
from mcpproxy.web.records import row_of
from mcpproxy.web.render import environment

if TYPE_CHECKING:
    from starlette.requests import Request

    from mcpproxy.activity.record import Stored

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.4
CALLS_SECONDS: Final = 3.0
"""How often a page is told at most that there were calls: it then draws its numbers anew."""
BEAT_SECONDS: Final = 15.0
MOST_ROWS: Final = 50
_RETRY: Final = b"retry: 2000\n\n"
_BEAT: Final = b": still here\n\n"
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class _News(Struct):
    """What has happened since the page was last told."""

    rows: deque[Stored] = field(default_factory=lambda: deque(maxlen=MOST_ROWS))
    left_out: int = 0
    calls: bool = False

    def add(self, record: Stored, wanted: Filter | None) -> None:
        """Take in one record."""
        self.calls = True
        if wanted is not None and passes(wanted, record):
            self.left_out += len(self.rows) == MOST_ROWS
            self.rows.append(record)


async def live(request: Request) -> Response:
    """The stream of one page; it says in its address what it wants to hear of."""
    desk = desk_of(request)
    after = request.headers.get("last-event-id") or request.query_params.get("after") or None
    if after is not None and not _ULID.fullmatch(after):
        raise HTTPException(422, "There is no record with such an id.")
    try:
        which = asked(request.query_params)
    except BadFilter as error:
        raise HTTPException(422, str(error)) from None
    wanted = which if request.query_params.get("rows") else None
    return TakingTurns(
        desk.streams,
        _stream(request, desk, wanted, after if wanted is not None else None),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _stream(
    request: Request, desk: Desk, wanted: Filter | None, after: str | None
) -> AsyncGenerator[bytes, None]:
    news = _News()
    reading = asyncio.create_task(_read(desk, news, wanted, after))
    watched = request.query_params.get("log", "")
    seen = {**desk.signs(watched), **_shown(request)}
    loop = asyncio.get_running_loop()
    told_calls = spoke = loop.time()
    yield _RETRY
    try:
        while not desk.rooms.stopping.is_set() and not reading.done() and _is_welcome(request, desk):
            await asyncio.sleep(LOOK_SECONDS)
            events = []
            signs = desk.signs(watched)
            events += [_event(name, [signs[name]]) for name in signs if signs[name] != seen[name]]
            seen = signs
            if news.rows:
                events.append(_rows(desk, news))
            if news.calls and loop.time() - told_calls > CALLS_SECONDS:
                news.calls, told_calls = False, loop.time()
                events.append(_event("calls"))
            if not events and loop.time() - spoke > BEAT_SECONDS:
                events.append(_BEAT)
            if events:
                spoke = loop.time()
                yield b"".join(events)
    finally:
        reading.cancel()
        await asyncio.wait({reading})


async def _read(desk: Desk, news: _News, wanted: Filter | None, after: str | None) -> None:
    try:
        async with contextlib.aclosing(desk.rooms.feed.follow(after)) as records:
            async for record in records:
                if not isinstance(record, Skipped):
                    news.add(record, wanted)
    except StorageError as error:  # the page comes back by itself
        log.warning("a page is no longer kept up to date, since the log cannot be read: %s", error)


def _shown(request: Request) -> dict[str, str]:
    """The signs of what the page already shows: it was drawn before its stream began."""
    return {name: sign for name in ("servers", "log") if (sign := request.query_params.get(f"seen_{name}"))}


def _rows(desk: Desk, news: _News) -> bytes:
    """The newest rows, newest first, as the page's own template draws them."""
    rows, left_out = list(news.rows), news.left_out
    news.rows.clear()
    news.left_out = 0
    template = environment().get_template("_rows.html")
    html = template.render(rows=[row_of(record) for record in reversed(rows)], left_out=left_out)
    return _event("rows", html.splitlines(), rows[-1].id)


def _event(name: str, lines: Iterable[str] = ("",), id_: str = "") -> bytes:
    fields = [*([f"id: {id_}"] if id_ else ()), f"event: {name}", *(f"data: {line}" for line in lines)]
    return ("\n".join(fields) + "\n\n").encode(errors="replace")


def passes(wanted: Filter, record: Stored) -> bool:
    """Whether a filter lets a record through that was just written."""
    intent, search = derived(record)
    fields = {name: getattr(record, name, None) for name in wanted.names()} | {"intent_type": intent}
    if any(fields[name] != value for name, value in wanted.names().items()):
        return False
    if wanted.start_time is not None and record.timestamp < wanted.start_time:
        return False
    if wanted.end_time is not None and record.timestamp >= wanted.end_time:
        return False
    return wanted.q is None or _has_words(search, wanted.q)


def _has_words(search: str, query: str) -> bool:
    words, held = query_words(query), search.split()
    return bool(words) and all(
        any(other.startswith(word) if begins else other == word for other in held) for word, begins in words
    )


def _is_welcome(request: Request, desk: Desk) -> bool:
    return desk.rooms.browsers.find(request.headers.get("cookie")) is not None


routes = [Route("/ui/live", live)]
