"""`/ui/servers/import`: which servers do my other programs have? Read, shown with what each would run, then added."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.routing import Route

from mcpproxy.config.errors import ConfigAccessError, ConfigError
from mcpproxy.config.foreign import ForeignFile, Found, files_of, servers_in
from mcpproxy.config.load import read
from mcpproxy.config.mask import masked
from mcpproxy.web.desk import Desk, desk_of, see
from mcpproxy.web.entry import command_line
from mcpproxy.web.forms import Form, form
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class Candidate(Struct, frozen=True, kw_only=True):
    """One server that could be added."""

    name: str
    what: str
    """What it would run or reach, secrets hidden."""
    env: tuple[str, ...]
    """The names of the variables that it would get."""
    warnings: tuple[str, ...]
    why_not: str
    """Why it cannot be added; empty where it can."""
    outcome: str = ""
    """What came of adding it, where that was tried."""


async def show(request: Request) -> Response:
    """What was found on this machine, and a place to paste something."""
    files = await asyncio.to_thread(files_of, Path.home())
    return _page(request, files=files)


async def look(request: Request) -> Response:
    """Read what was pasted or chosen, and show what is in it; or add what was ticked."""
    given = form(request)
    try:
        text, origin = await _text(given)
        found = servers_in(text.encode())
    except (ConfigError, ConfigAccessError) as error:
        files = await asyncio.to_thread(files_of, Path.home())
        return _page(request, files=files, text=given.raw("text"), problem=str(error), status=422)
    if given.get("step") == "add":
        return await _add(request, given, text, found)
    return _page(request, text=text, origin=origin, candidates=_candidates(desk_of(request), request, found))


async def _add(request: Request, given: Form, text: str, found: tuple[Found, ...]) -> Response:
    desk = desk_of(request)
    wanted, failed = given.all("server"), {}
    for each in found:
        if each.name in wanted and each.server is not None:
            entry = each.entry | {"quarantined": True} if "quarantined" in given else each.entry
            answer = await desk.rest.ask(request, "POST", "/servers", entry)
            if answer.error is not None:
                failed[each.name] = answer.error.message
    if not wanted or failed:
        problem = "Some servers could not be added." if failed else "Tick the servers to add."
        candidates = _candidates(desk, request, found, failed)
        return _page(request, text=text, candidates=candidates, problem=problem, status=409 if failed else 422)
    return see(url("/ui/servers", done="imported"))


async def _text(given: Form) -> tuple[str, str]:
    """What to read: a file of another program, by its number in our own list, or what was pasted."""
    if not given.get("file"):
        return given.raw("text"), "what you pasted"
    files = await asyncio.to_thread(files_of, Path.home())
    chosen = next((file for file in files if str(file.path) == given.get("file")), None)
    if chosen is None:
        return given.raw("text"), "what you pasted"
    data, _ = await asyncio.to_thread(read, chosen.path)
    return data.decode("utf-8-sig", errors="replace"), str(chosen.path)


def _candidates(
    desk: Desk, request: Request, found: tuple[Found, ...], failed: dict[str, str] | None = None
) -> list[Candidate]:
    held = {upstream.name for upstream in desk.rooms.house.pool}
    return [_candidate(each, held, request.url.netloc, (failed or {}).get(each.name, "")) for each in found]


def _candidate(found: Found, held: set[str], here: str, outcome: str) -> Candidate:
    why_not = "; ".join(found.problems)
    what = ""
    env: tuple[str, ...] = ()
    if found.server is not None:
        config = masked(found.server)
        what, env = config["url"] or command_line(config), tuple(found.server.env or found.server.headers)
        if found.server.url and urlsplit(found.server.url).netloc == here:
            why_not = "this is mcpproxy itself"
        elif found.name in held:
            why_not = "there is a server of that name already"
    return Candidate(name=found.name, what=what, env=env, warnings=found.warnings, why_not=why_not, outcome=outcome)


def _page(
    request: Request,
    *,
    files: list[ForeignFile] | None = None,
    text: str = "",
    origin: str = "what you pasted",
    candidates: list[Candidate] | None = None,
    **more: Any,
) -> Response:
    context = {"files": files or [], "text": text, "origin": origin, "candidates": candidates, **more}
    return desk_of(request).page(request, "import.html", **context)


routes = [
    Route("/ui/servers/import", show, methods=["GET"]),
    Route("/ui/servers/import", look, methods=["POST"]),
]
