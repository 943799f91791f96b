"""How does a request change the configuration? Checked like the file, secrets put back, and its id on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request

from mcpproxy.api.envelope import ApiError, bad_field, bad_fields, request_id
from mcpproxy.api.services import Services, source
from mcpproxy.chronicle import caused_by
from mcpproxy.config import document as documents
from mcpproxy.config.changes import Changes, compare
from mcpproxy.config.errors import HIDDEN, ConfigError, Problem, entry, member
from mcpproxy.config.load import parse
from mcpproxy.config.mask import unmask

_ENTRY = "mcpServers[0]"


async def document(request: Request) -> dict[str, Any]:
    """The body as a document in which everything means one thing: no key twice, no half characters, no NaN."""
    try:
        return documents.decode(await request.body()).value
    except ConfigError as error:
        raise invalid(error) from None


def invalid(error: ConfigError) -> ApiError:
    """The answer to settings that would not load: each field, and what is allowed there."""
    return bad_fields([_field(problem) for problem in error.problems[:20]])


def _field(problem: Problem) -> dict[str, Any]:
    place = problem.path.removeprefix(_ENTRY).lstrip(".") or "body"
    advice = f"; {problem.allowed}" if problem.allowed else ""
    guess = f" (did you mean {problem.nearest!r}?)" if problem.nearest is not None else ""
    field = {"field": place, "message": f"{problem.what}{advice}{guess}"}
    return field | ({"allowed": problem.allowed} if problem.allowed else {})


async def change(request: Request, rooms: Services, mutate: Callable[[dict[str, Any]], None]) -> Changes:
    """Change the file and wait until that is in force; what would not load is refused and not written."""
    changes = Changes()

    def checked(content: dict[str, Any]) -> None:
        nonlocal changes
        try:
            before, _ = parse(content)
        except ConfigError as error:
            raise ApiError(409, f"Nothing was changed: the file does not load as it stands. {error}") from None
        mutate(content)
        try:
            changes = compare(before, parse(content)[0])
        except ConfigError as error:
            raise invalid(error) from None

    try:
        with caused_by(source(request), request_id(request)):
            await rooms.change_config(checked)
    except ConfigError as error:  # the file itself: it has comments, or was taken away
        raise ApiError(409, str(error)) from None
    return changes


def unmasked(edited: Any, original: Any, shown: Any) -> Any:
    """What was meant by a document that was shown with secrets hidden and comes back edited."""
    _check_masks(edited, shown, "")
    return unmask(edited, original, shown)


def _check_masks(edited: Any, shown: Any, path: str) -> None:
    """Refuse a mask where nobody can say for sure which secret it stands for: it would become the secret."""
    if isinstance(edited, dict):
        before = shown if isinstance(shown, dict) else {}
        for key, item in edited.items():
            _check_masks(item, before.get(key), member(path, key))
    elif isinstance(edited, list):
        before_items = shown if isinstance(shown, list) else []
        for index, item in enumerate(edited):
            # In a list only what stands before it tells one mask from another.
            same = edited[:index] == before_items[:index] and index < len(before_items)
            _check_masks(item, before_items[index] if same else None, entry(path, index))
    elif isinstance(edited, str) and HIDDEN in edited and edited != shown:
        raise bad_field(path, f"{HIDDEN} stands for a hidden value; write the value itself, or leave the key out")
