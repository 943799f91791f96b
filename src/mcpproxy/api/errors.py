"""What does a route's error come to? One answer for each kind, in the envelope."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from mcpproxy.activity.filters import BadFilter
from mcpproxy.activity.journal import RecordFailed
from mcpproxy.api.envelope import ApiError, bad_field, bad_fields, failure
from mcpproxy.asgi import Gone
from mcpproxy.config.errors import ConfigAccessError
from mcpproxy.storage.errors import StorageError

_MOST_FIELDS = 10
_PLACES = ("query", "body", "path", "header")


def answer_errors(app: FastAPI) -> None:
    """Have every error of a route answered in the envelope."""
    for kind, answer in {
        ApiError: _own,
        BadFilter: _bad_filter,
        ConfigAccessError: _unavailable,
        StorageError: _unavailable,
        RecordFailed: _unavailable,
        RequestValidationError: _invalid,
        HTTPException: _framework,
        Gone: _gone,
        Exception: _crash,
    }.items():
        app.add_exception_handler(kind, answer)


async def _own(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return failure(request, error)


async def _bad_filter(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadFilter)
    allowed = list(error.allowed) if isinstance(error.allowed, tuple) else error.allowed
    message = str(error).removeprefix(f"{error.field}: ")
    return failure(request, bad_field(error.field, message, allowed))


async def _unavailable(request: Request, error: Exception) -> Response:
    return failure(request, ApiError(503, str(error)))


async def _invalid(request: Request, error: Exception) -> Response:
    """A request that FastAPI found not to be in order: which field, and what would be right."""
    assert isinstance(error, RequestValidationError)
    fields: list[dict[str, Any]] = []
    for found in error.errors()[:_MOST_FIELDS]:
        field = ".".join(str(part) for part in found["loc"] if part not in _PLACES)[:200] or "body"
        unknown = found["type"] == "extra_forbidden"
        message = "there is no such field" if unknown else found["msg"][:500]
        allowed = _allowed(request.scope.get("route"), field, unknown=unknown)
        if allowed:
            said = allowed if isinstance(allowed, str) else ", ".join(allowed)
            fields.append({"field": field, "message": f"{message}; use {said}", "allowed": allowed})
        else:
            fields.append({"field": field, "message": message})
    return failure(request, bad_fields(fields))


def _allowed(route: Any, field: str, *, unknown: bool) -> str | list[str] | None:
    """What would be right: of a number its bounds, of a field that is not known those that are."""
    if not isinstance(route, APIRoute):
        return None
    if unknown and route.body_field is not None and "." not in field:
        return list(getattr(route.body_field.field_info.annotation, "model_fields", ()))
    for parameter in route.dependant.query_params:
        if parameter.alias == field:
            given = parameter.field_info.metadata
            least = [bound.ge for bound in given if hasattr(bound, "ge")]
            most = [bound.le for bound in given if hasattr(bound, "le")]
            return f"a whole number from {least[0]} to {most[0]}" if least and most else None
    return None


async def _framework(request: Request, error: Exception) -> Response:
    """What FastAPI itself refuses: a body that cannot be read at all."""
    assert isinstance(error, HTTPException)
    if error.status_code == 400:
        return failure(request, bad_field("body", "it cannot be read as JSON"))
    return failure(request, ApiError(error.status_code, str(error.detail)))


async def _gone(request: Request, error: Exception) -> Response:
    """Nobody waits for it any more."""
    return Response(status_code=499)


async def _crash(request: Request, error: Exception) -> Response:
    """What should not have happened, without saying more than that; the HTTP server logs the rest."""
    return failure(request, ApiError(500, "Something went wrong here; the log says more."))
