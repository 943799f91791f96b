"""`/openapi.json` and `/docs`: what can be asked here? One document for programs, and the same as a page to read.

The page is made here from the document, once. It has no script, and fetches nothing from anywhere.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import APIRouter
from fastapi.responses import Response
from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

_METHODS = ("get", "post", "put", "patch", "delete")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_MOST_DEPTH = 6


def router_for(document: dict[str, Any]) -> APIRouter:
    """The routes that show an OpenAPI document."""
    router = APIRouter(include_in_schema=False)
    as_json, as_page = msgspec.json.encode(document), page(document).encode()

    @router.get("/openapi.json")
    async def openapi() -> Response:
        return Response(as_json, media_type="application/json")

    @router.get("/docs")
    async def docs() -> Response:
        headers = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer"}
        return Response(as_page, media_type="text/html", headers=headers)

    return router


def page(document: dict[str, Any]) -> str:
    """The document as a page for people."""
    environment = Environment(autoescape=select_autoescape(default=True), undefined=StrictUndefined, trim_blocks=True)
    environment.filters["code"] = _with_code
    template = environment.from_string(files("mcpproxy.api").joinpath("docs.html").read_text("utf-8"))
    return template.render(info=document["info"], groups=_groups(document))


def _with_code(text: str) -> Markup:
    """A text with what stands between backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped right there


def _groups(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The operations by what they are about, each with what a reader wants to know."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                operation = _operation(document, method, path, item[method])
                groups.setdefault(item[method]["tags"][0], []).append(operation)
    return groups


def _operation(document: dict[str, Any], method: str, path: str, found: dict[str, Any]) -> dict[str, Any]:
    body = found.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = body.get("example") or (_sample(document, body["schema"]) if body else None)
    answers = [
        (status, answer["description"], _fields(document, answer))
        for status, answer in sorted(found["responses"].items())
    ]
    return {
        "id": found["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": found.get("description") or found.get("summary", ""),
        "parameters": [_parameter(parameter) for parameter in found.get("parameters", ())],
        "curl": _curl(method, path, example),
        "answers": answers,
    }


def _parameter(found: dict[str, Any]) -> dict[str, Any]:
    schema = found.get("schema", {})
    kinds = [schema, *schema.get("anyOf", ())]
    bounds = [
        f"{word} {kind[key]}" for kind in kinds for key, word in (("minimum", "from"), ("maximum", "to")) if key in kind
    ]
    return {
        "name": found["name"],
        "where": found["in"],
        "required": found.get("required", False),
        "text": found.get("description", ""),
        "choices": next((kind["enum"] for kind in kinds if "enum" in kind), []),
        "bounds": " ".join(bounds).capitalize(),
        "default": schema.get("default"),
    }


def _curl(method: str, path: str, example: Any) -> str:
    lines = [f"curl {'-X ' + method.upper() + ' ' if method != 'get' else ''}http://127.0.0.1:8080{path}"]
    lines.append('  -H "X-API-Key: $MCPPROXY_API_KEY"')
    if example is not None:
        lines += ['  -H "Content-Type: application/json"', f"  -d '{json.dumps(example)}'"]
    return " \\\n".join(lines)


def _fields(document: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """What the `data` of a successful answer holds."""
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    data = _resolved(document, schema).get("properties", {}).get("data", {})
    return list(_resolved(document, data).get("properties", {}))


def _sample(document: dict[str, Any], schema: dict[str, Any], depth: int = 0) -> Any:
    """A value such as the schema asks for, of its required fields and those with examples."""
    found = _resolved(document, schema)
    if "examples" in found:
        return found["examples"][0]
    if depth < _MOST_DEPTH and "properties" in found:
        needed = found.get("required", ())
        return {
            name: _sample(document, part, depth + 1)
            for name, part in found["properties"].items()
            if name in needed or "examples" in part
        }
    return found.get("default", "…")


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found
