"""Which paths are there, with which methods and parameters? Read from the OpenAPI document, so that both agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from re import Pattern
from typing import Any
from urllib.parse import parse_qsl

from starlette.routing import compile_path

from mcpproxy.api.envelope import ApiError, bad_field

Methods = Mapping[str, frozenset[str]]
"""The names of the query parameters, by method."""


class Routes:
    """Every path of the REST face."""

    def __init__(self, openapi: Mapping[str, Any], unlisted: Iterable[str] = ()) -> None:
        paths = {path: _methods(item) for path, item in openapi["paths"].items()}
        paths |= {path: {"GET": frozenset()} for path in unlisted}
        # Those without a free part first: `/activity/summary` is not the record named summary.
        ordered = sorted(paths, key=lambda path: (path.count("{"), path))
        self._paths: list[tuple[Pattern[str], Methods]] = [(compile_path(path)[0], paths[path]) for path in ordered]

    def check(self, method: str, path: str, query: bytes) -> None:
        """Raise the right error where no route takes this request."""
        methods = next((methods for pattern, methods in self._paths if pattern.match(path)), None)
        if methods is None:
            raise ApiError(404, f"There is nothing at {path[:200]}; see /api/v1/docs.")
        if method not in methods:
            allow = allowed(methods)
            raise ApiError(405, f"{path[:200]} takes {allow}.", headers={"Allow": allow})
        _check_parameters(query, methods[method])

    def methods(self, path: str) -> Methods:
        """The methods of a path; empty where there is none."""
        return next((methods for pattern, methods in self._paths if pattern.match(path)), {})


def allowed(methods: Methods) -> str:
    """The `Allow` header of a path."""
    return ", ".join(sorted({*methods, "OPTIONS"} | ({"HEAD"} if "GET" in methods else set())))


def _methods(item: Mapping[str, Any]) -> Methods:
    return {
        method.upper(): frozenset(found["name"] for found in operation.get("parameters", ()) if found["in"] == "query")
        for method, operation in item.items()
    }


def _check_parameters(query: bytes, known: frozenset[str]) -> None:
    """Refuse what the route does not know, or what is given twice: it would not do what was meant."""
    if not query:
        return
    given = [name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)]
    for name in given:
        if name not in known:
            choices = sorted(known)
            raise bad_field(name[:100], f"there is no such parameter; use {', '.join(choices) or 'none'}", choices)
        if given.count(name) > 1:
            raise bad_field(name, "it is given more than once")
