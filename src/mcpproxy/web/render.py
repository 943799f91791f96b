"""How does a page become HTML? Templates that escape everything, and assets that a browser keeps for good."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response

from mcpproxy.web import text, words
from mcpproxy.web.guard import STATIC

if TYPE_CHECKING:
    from starlette.requests import Request

_KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@cache
def _assets() -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in files("mcpproxy.web").joinpath("static").iterdir()}


@cache
def asset(name: str) -> str:
    """The address of an asset; another one once its content is another."""
    return f"{STATIC}{name}?v={hashlib.sha256(_assets()[name]).hexdigest()[:12]}"


def url(path: str, **query: object) -> str:
    """An address of ours with these parameters; those that are empty are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


@cache
def environment() -> Environment:
    """The templates and what they may use."""
    made = Environment(
        loader=PackageLoader("mcpproxy.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "moment": text.moment,
        "span": text.span,
        "took": text.took,
        "count": text.count,
        "visible": text.visible,
        "pretty": text.pretty,
    }
    made.globals |= {"asset": asset, "url": url, "share": text.share, "words": words}
    return made


def html(template: str, context: dict[str, Any], status: int = 200) -> Response:
    """A page."""
    return Response(environment().get_template(template).render(context), status, media_type="text/html")


async def static(request: Request) -> Response:
    """One asset."""
    name = request.path_params["name"]
    body = _assets().get(name)
    if body is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    return Response(body, media_type=_KINDS["." + name.rpartition(".")[2]])
