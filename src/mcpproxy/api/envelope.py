"""How does every answer look? `success`, `data` or `error`, and the id under which the request is on record."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec
from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

Data = TypeVar("Data")

_CODES = {
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "TOO_SLOW",
    409: "CONFLICT",
    413: "TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    422: "INVALID",
    429: "BUSY",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class Ok(BaseModel, Generic[Data]):
    """A successful answer."""

    success: Literal[True] = True
    data: Data
    request_id: str


class Problem(BaseModel):
    """What went wrong."""

    code: str = Field(examples=["NOT_FOUND"])
    message: str
    details: dict[str, Any] | None = Field(
        default=None, description="More, where there is more; of a request that is not in order, its `fields`"
    )


class Failure(BaseModel):
    """A refused or failed request."""

    success: Literal[False] = False
    error: Problem
    request_id: str


class ApiError(Exception):
    """Ends a request with a status and a word on why."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        details: Any = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or _CODES.get(status, "ERROR")
        self.message = message
        self.details = details
        self.headers = headers or {}


def busy(message: str, seconds: int = 1) -> ApiError:
    """The error of a request that came at a bad moment."""
    return ApiError(429, message, headers={"Retry-After": str(seconds)})


def bad_field(field: str, message: str, allowed: Any = None) -> ApiError:
    """The error of a request with one field that is not in order."""
    return bad_fields([{"field": field, "message": message} | ({"allowed": allowed} if allowed else {})])


def bad_fields(fields: list[dict[str, Any]]) -> ApiError:
    """The error of a request with fields that are not in order."""
    text = "; ".join(f"{found['field']}: {found['message']}" for found in fields)
    return ApiError(422, text, details={"fields": fields})


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


def failure_body(error: ApiError, named: str) -> bytes:
    """The body that says what went wrong."""
    problem: dict[str, Any] = {"code": error.code, "message": _text(error.message)}
    if error.details:
        problem["details"] = error.details
    return msgspec.json.encode({"success": False, "error": problem, "request_id": named})


def failure(request: Request, error: ApiError) -> Response:
    """The answer that says what went wrong."""
    body = failure_body(error, request_id(request))
    return Response(body, status_code=error.status, media_type="application/json", headers=error.headers)


def _text(message: str) -> str:
    # A caller's half characters may stand in it, which no encoder takes.
    return message.encode(errors="replace").decode()


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": text}
    for status, text in {
        401: "No key, or one that is not known",
        403: "Refused by policy, or not for this key",
        404: "No such thing",
        405: "Not this method; Allow names those that are",
        422: "The request is not in order; the error names the fields",
        429: "Busy: try again after Retry-After seconds",
        500: "Something went wrong here; the log says more",
        503: "The database, or what stands behind this, does not answer now",
    }.items()
}
"""What every route may answer besides success."""

BODY_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": Failure, "description": text}
    for status, text in {
        408: "The body did not arrive in time",
        409: "It is not to be done as things stand",
        413: "The body is larger than max_request_bytes",
        415: "The body is not JSON",
    }.items()
}
"""What every route that changes something may answer besides."""
