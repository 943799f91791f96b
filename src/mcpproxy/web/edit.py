"""`/ui/servers/new`, `/ui/server/edit`: how is a server added or changed? By a form that knows what is wrong where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from mcpproxy.config.mask import masked
from mcpproxy.web.desk import desk_of, see
from mcpproxy.web.entry import EMPTY, BadField, changes, entry_of, field_of, texts_of, without_gaps
from mcpproxy.web.forms import form
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mcpproxy.web.rest import Answer


async def show_new(request: Request) -> Response:
    """The empty form."""
    return _page(request, None, EMPTY | {"kind": "url" if request.query_params.get("kind") == "url" else "command"})


async def add(request: Request) -> Response:
    """Add a server."""
    given = form(request)
    try:
        entry = without_gaps(entry_of(given)) | {"name": given.get("name"), "quarantined": "quarantined" in given}
    except BadField as error:
        return _page(request, None, EMPTY | given.values(), {error.field: str(error)})
    answer = await desk_of(request).rest.ask(request, "POST", "/servers", entry)
    if answer.error is not None:
        return _refused(request, None, EMPTY | given.values(), answer)
    return see(url("/ui/server", name=entry["name"], done="added"))


async def show_edit(request: Request) -> Response:
    """The form with what is configured, secrets hidden."""
    upstream = desk_of(request).upstream(request.query_params.get("name", ""))
    return _page(request, upstream.name, texts_of(masked(upstream.server)))


async def save(request: Request) -> Response:
    """Change a server's entry."""
    desk, given = desk_of(request), form(request)
    upstream = desk.upstream(given.get("name"))
    before = masked(upstream.server)
    texts = texts_of(before) | given.values()
    try:
        patch = changes(entry_of(given), before)
    except BadField as error:
        return _page(request, upstream.name, texts, {error.field: str(error)})
    answer = await desk.rest.ask(request, "PATCH", f"/servers/{upstream.name}", patch)
    if answer.error is not None:
        return _refused(request, upstream.name, texts, answer)
    return see(url("/ui/server", name=upstream.name, done="saved"))


def _refused(request: Request, name: str | None, texts: dict[str, str], answer: Answer) -> Response:
    assert answer.error is not None
    problems = {field_of(path): message for path, message in answer.error.fields.items()}
    rest = answer.error.message if not problems else None
    return _page(request, name, texts, problems, status=answer.status, problem=rest)


def _page(
    request: Request,
    name: str | None,
    texts: dict[str, str],
    problems: dict[str, str] | None = None,
    *,
    status: int | None = None,
    **more: Any,
) -> Response:
    return desk_of(request).page(
        request,
        "edit.html",
        status=status or (422 if problems else 200),
        server_name=name,
        texts=texts,
        problems=problems or {},
        quarantined="quarantined" in form(request),
        **more,
    )


routes = [
    Route("/ui/servers/new", show_new, methods=["GET"]),
    Route("/ui/servers/new", add, methods=["POST"]),
    Route("/ui/server/edit", show_edit, methods=["GET"]),
    Route("/ui/server/edit", save, methods=["POST"]),
]
