"""How does every answer look? `success`, `data` or `error`, and the id under which the request is on record."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

Data = TypeVar("Data")

_CODES = {
    400: "BAD_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    409: "CONFLICT",
    413: "TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    422: "INVALID",
    429: "BUSY",
    503: "UNAVAILABLE",
}


class Ok(BaseModel, Generic[Data]):
    """A successful answer."""

    success: Literal[True] = True
    data: Data
    request_id: str


class Problem(BaseModel):
    """What went wrong."""

    code: str
    message: str
    details: dict[str, Any] | None = None


class Failure(BaseModel):
    """A refused or failed request."""

    success: Literal[False] = False
    error: Problem
    request_id: str


class ApiError(Exception):
    """Ends a request with a status and a word on why."""

    def __init__(
        self, status: int, message: str, code: str | None = None, details: Any = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or _CODES.get(status, "ERROR")
        self.message = message
        self.details = details
        self.retry_after = retry_after


def request_id(request: Request) -> str:
    """The id of this request, on its answer and on its records."""
    found: str = request.scope["mcpproxy.request_id"]
    return found


def ok(request: Request, data: Any) -> dict[str, Any]:
    """A successful answer."""
    return {"success": True, "data": data, "request_id": request_id(request)}


def raw_ok(request: Request, data: bytes) -> Response:
    """A successful answer whose data are raw JSON, passed on byte for byte."""
    body = b'{"success":true,"data":%s,"request_id":%s}' % (data, msgspec.json.encode(request_id(request)))
    return Response(body, media_type="application/json")


def failure(request: Request, error: ApiError) -> Response:
    """The answer that says what went wrong."""
    problem: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details:
        problem["details"] = error.details
    body = msgspec.json.encode({"success": False, "error": problem, "request_id": request_id(request)})
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else None
    return Response(body, status_code=error.status, media_type="application/json", headers=headers)


async def on_api_error(request: Request, error: Exception) -> Response:
    """Answer an error of our own."""
    assert isinstance(error, ApiError)
    return failure(request, error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer an error of the framework: no such route, no such method."""
    assert isinstance(error, HTTPException)
    message = f"There is nothing at {request.url.path}" if error.status_code == 404 else str(error.detail)
    return failure(request, ApiError(error.status_code, message))


async def on_invalid(request: Request, error: Exception) -> Response:
    """Answer a request that is not in order: which field, and what would be right."""
    assert isinstance(error, RequestValidationError)
    problems = [
        {
            "field": ".".join(str(part) for part in found["loc"] if part not in ("query", "body", "path")) or "body",
            "message": found["msg"],
        }
        for found in error.errors()[:10]
    ]
    text = "; ".join(f"{problem['field']}: {problem['message']}" for problem in problems)
    return failure(request, ApiError(422, text, details={"fields": problems}))


async def on_crash(request: Request, error: Exception) -> Response:
    """Answer what should not have happened, without saying more than that."""
    return failure(request, ApiError(500, "Something went wrong here; the log says more.", "INTERNAL"))


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": text}
    for status, text in {
        401: "No key, or one that is not known",
        403: "Refused by policy, or not for this key",
        404: "No such thing",
        422: "The request is not in order; the error names the field",
        429: "Busy: try again after Retry-After seconds",
        500: "Something went wrong here",
    }.items()
}
