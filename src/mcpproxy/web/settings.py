"""`/ui/settings`: what did the operator say? Checked while it is typed, and saved once it is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.routing import Route

from mcpproxy.config.mask import masked
from mcpproxy.config.write import merge_settings
from mcpproxy.web.desk import desk_of, see
from mcpproxy.web.forms import form
from mcpproxy.web.options import changed, options
from mcpproxy.web.render import url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


class Review(Struct, frozen=True, kw_only=True):
    """What a form would change, before anything is written."""

    problems: dict[str, str]
    changes: list[tuple[str, str, str, bool]]
    """Key, before, after, and whether it waits for the next start."""
    warnings: list[str]


async def show(request: Request) -> Response:
    """The settings in force."""
    return _page(request, None, {})


async def check(request: Request) -> Response:
    """Say what the form would change and what is wrong with it. Nothing is written."""
    given = form(request).values()
    return _page(request, await _review(request, given), given)


async def save(request: Request) -> Response:
    """Write what has changed, where all of it is right."""
    desk, given = desk_of(request), form(request).values()
    review = await _review(request, given)
    if review.problems or not review.changes:
        return _page(request, review, given, status=422 if review.problems else 200)
    answer = await desk.rest.ask(request, "PATCH", "/config", changed(given, desk.rooms.loaded().config))
    if answer.error is not None:
        return _page(request, review, given, status=answer.status, problem=answer.error.message)
    return see(url("/ui/settings", done="restart" if answer.value()["restart_required"] else "saved"))


async def _review(request: Request, given: dict[str, str]) -> Review:
    desk = desk_of(request)
    config = desk.rooms.loaded().config
    patch = changed(given, config)
    whole = masked(config)
    merge_settings(whole, patch)
    answer = await desk.rest.ask(request, "POST", "/config/validate", whole)
    known = {option.key: option for members in options(config).values() for option in members}
    if answer.error is not None:
        return Review(problems={"": answer.error.message}, changes=[], warnings=[])
    found = answer.value()
    return Review(
        problems={problem["path"].partition("[")[0]: _sentence(problem) for problem in found["problems"]},
        changes=[
            (key, known[key].text or known[key].default, given[key].strip() or known[key].default, known[key].restart)
            for key in _keys(patch)
        ],
        warnings=found["warnings"],
    )


def _keys(patch: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key, value in patch.items():
        found += _keys(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]
    return found


def _sentence(problem: dict[str, Any]) -> str:
    guess = f" Did you mean {problem['nearest']}?" if problem["nearest"] else ""
    return f"{problem['message']}; {problem['allowed']}.{guess}" if problem["allowed"] else f"{problem['message']}."


def _page(
    request: Request, review: Review | None, given: dict[str, str], *, status: int = 200, **more: Any
) -> Response:
    desk = desk_of(request)
    loaded = desk.rooms.loaded()
    groups = options(loaded.config)
    return desk.page(
        request,
        "settings.html",
        status=status,
        groups=groups,
        help_ids=",".join(f"#help-{option.place}" for members in groups.values() for option in members),
        given=given,
        review=review,
        file=str(loaded.path),
        warnings=list(loaded.warnings),
        **more,
    )


routes = [
    Route("/ui/settings", show, methods=["GET"]),
    Route("/ui/settings", save, methods=["POST"]),
    Route("/ui/settings/check", check, methods=["POST"]),
]
