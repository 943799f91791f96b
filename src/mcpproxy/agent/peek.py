"""What is in a message, as far as we look beside the SDK? Anything odd in it is the SDK's to judge, and costs no more
than the part that it stands in."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, UnsetType

from mcpproxy.agent.arguments import UNREADABLE
from mcpproxy.asgi import Headers

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"

Shape = TypeVar("Shape")
Carried = tuple[Headers, dict[str, Raw] | UnsetType]
"""Where a request may name the span of its caller: its headers, and its `_meta`."""


class Peek(Struct, frozen=True):
    """The parts of a message that routing and the record need."""

    method: str | None = None
    arguments: bytes = b"{}"
    """The raw `arguments` of a tools/call."""
    request_id: int | str | None = None
    """The request that a cancellation names."""
    client_name: str | None = None
    modern: bool = False
    """Whether it carries the envelope of 2026-07-28."""
    meta: dict[str, Raw] = {}


class _Message(Struct):
    method: str | None = None
    params: Raw = Raw(b"")


class _Params(Struct, rename={"client_info": "clientInfo", "request_id": "requestId", "meta": "_meta"}):
    arguments: Raw = Raw(b"")
    client_info: Raw = Raw(b"")
    request_id: Raw = Raw(b"")
    meta: Raw = Raw(b"")


class _Client(Struct):
    name: str


def peek(message: bytes) -> Peek:
    """Look into a message."""
    seen = _read(message, _Message, _Message())
    params = _read(seen.params, _Params, _Params())
    meta: dict[str, Raw] = _read(params.meta, dict[str, Raw], {})
    named = {CLIENT_KEY: params.client_info} if seen.method == "initialize" else meta
    request_id: int | str | None = _read(params.request_id, int | str, None)
    arguments = bytes(params.arguments) or b"{}"
    return Peek(seen.method, arguments, request_id, client_name(named), VERSION_KEY in meta, meta)


def client_name(meta: Mapping[str, Raw]) -> str | None:
    """The name that a client gives itself in its envelope."""
    client = _read(meta.get(CLIENT_KEY, Raw(b"")), _Client, None)
    return client.name if client is not None else None


def _read(data: bytes | Raw, shape: Any, otherwise: Shape) -> Shape:
    with contextlib.suppress(*UNREADABLE):
        read: Shape = msgspec.json.decode(data, type=shape) if bytes(data) else otherwise
        return read
    return otherwise
