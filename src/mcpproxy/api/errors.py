"""What does a route's error come to? One answer for each kind, in the envelope."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
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
    fields = [
        {
            "field": ".".join(str(part) for part in found["loc"] if part not in _PLACES)[:200] or "body",
            "message": found["msg"][:500],
        }
        for found in error.errors()[:_MOST_FIELDS]
    ]
    return failure(request, bad_fields(fields))


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
