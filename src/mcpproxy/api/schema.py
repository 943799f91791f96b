"""What does the OpenAPI document say besides what FastAPI finds? Keys, raw bodies, and what every change may answer."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from mcpproxy.api.envelope import BODY_FAILURES
from mcpproxy.config.models import Duration

_CHANGING = ("post", "put", "patch", "delete")
_DURATION = {
    "anyOf": [{"type": "string", "pattern": "^([0-9.]+(ns|us|µs|ms|s|m|h|d))+$"}, {"type": "number"}],
    "description": "Text such as 500ms, 3s, 2m or 1h, or a number of seconds",
}
_FAILURE = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
_KEYS = {
    "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "Bearer": {"type": "http", "scheme": "bearer", "description": "The API key, or an agent token"},
}
_bodies: list[type[Struct]] = []


def json_body(kind: type[Struct] | None, description: str, example: dict[str, Any]) -> dict[str, Any]:
    """The request body of a route that reads it by itself, for `openapi_extra`; without a kind it is any object."""
    schema: dict[str, Any] = {"type": "object"}
    if kind is not None:
        _bodies.append(kind)
        schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "description": description, "content": content}}


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI's document with the rest filled in."""
    components = document["components"]
    # From the very models that read the bodies.
    _, schemas = msgspec.json.schema_components(
        _bodies, schema_hook=_custom, ref_template="#/components/schemas/{name}"
    )
    components["schemas"] |= schemas
    components["securitySchemes"] = _KEYS
    document["security"] = [{name: []} for name in _KEYS]
    for item in document["paths"].values():
        for method, operation in item.items():
            for status in {"200", "201"} & operation["responses"].keys():
                _say_done(operation["responses"][status])
            if method in _CHANGING:
                operation["responses"] = _failures() | operation["responses"]
    return document


def _say_done(response: dict[str, Any]) -> None:
    if response["description"] == "Successful Response":
        response["description"] = "Done"


def _failures() -> dict[str, Any]:
    return {
        str(status): {"description": failure["description"], "content": _FAILURE}
        for status, failure in BODY_FAILURES.items()
    }


def _custom(kind: type) -> dict[str, Any]:
    if kind is Duration:
        return _DURATION
    raise NotImplementedError(kind)
