"""`/ui/activity`: what are my agents doing? Every record, filtered, live, and checked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from mcpproxy.activity.filters import BadFilter, Filter, parse_filter
from mcpproxy.activity.query import get_record, list_records
from mcpproxy.activity.record import INTENT_TYPES, STATUSES, TYPES
from mcpproxy.activity.tables import activity
from mcpproxy.web.desk import desk_of
from mcpproxy.web.records import details_of, row_of
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from mcpproxy.activity.query import Page
    from mcpproxy.storage.engine import Storage

FIELDS: Final = Filter.__struct_fields__
PAGE: Final = 50


def asked(query: Mapping[str, str]) -> Filter:
    """The records that an address asks for; raises BadFilter."""
    return parse_filter({name: query.get(name, "").strip().replace("\0", "") for name in FIELDS})


async def show(request: Request) -> Response:
    """The list of records."""
    desk = desk_of(request)
    given = {name: request.query_params.get(name, "").strip() for name in FIELDS}
    cursor = request.query_params.get("cursor") or None
    context: dict[str, Any] = {"rows": [], "total": 0, "exact": True, "older": None, "problem": None}
    live = url("/ui/live")
    try:
        newest, page = await asyncio.to_thread(_look, desk.rooms.storage, asked(request.query_params), cursor)
    except BadFilter as error:
        context["problem"] = str(error)
    else:
        context |= {
            "rows": [row_of(record) for record in page.activities],
            "total": page.total,
            "exact": page.total_exact,
            "older": url("/ui/activity", **given, cursor=page.next_cursor) if page.next_cursor else None,
        }
        if cursor is None:
            live = url("/ui/live", rows=1, after=newest, **given)
    return desk.page(
        request,
        "activity.html",
        status=422 if context["problem"] else 200,
        **context,
        given=given,
        filtered=any(given.values()),
        paged=cursor is not None,
        live=live,
        choices={"type": TYPES, "status": STATUSES, "intent_type": INTENT_TYPES},
        servers=sorted(upstream.name for upstream in desk.rooms.house.pool),
    )


def _look(storage: Storage, which: Filter, cursor: str | None) -> tuple[str, Page]:
    """A page, and the record after which everything is news to the page."""
    with storage.read() as connection:
        newest = connection.execute(select(activity.c.id).order_by(activity.c.seq.desc()).limit(1)).scalar()
    return newest or "", list_records(storage, which, PAGE, cursor)


async def show_record(request: Request) -> Response:
    """One record, and the others of the same request."""
    desk = desk_of(request)
    named = request.query_params.get("id", "")
    record = await asyncio.to_thread(get_record, desk.rooms.storage, named.replace("\0", ""))
    if record is None:
        raise HTTPException(404, f"There is no record with the id {named[:64]!r}. Old ones are removed after a while.")
    others = []
    if record.request_id:
        same = Filter(request_id=record.request_id)
        page = await asyncio.to_thread(list_records, desk.rooms.storage, same, 20)
        others = [row_of(other) for other in page.activities if other.id != record.id]
    return desk.page(request, "record.html", details=details_of(record), others=others)


async def check(request: Request) -> Response:
    """Hold the whole log against its hashes and signatures."""
    desk = desk_of(request)
    answer = await desk.rest.ask(request, "GET", "/activity/verify")
    found = answer.value() if answer.error is None else None
    problem = answer.error.message if answer.error is not None else None
    return desk.page(request, "check.html", status=answer.status, found=found, problem=problem)


routes = [
    Route("/ui/activity", show),
    Route("/ui/activity/record", show_record),
    Route("/ui/activity/check", check),
]
