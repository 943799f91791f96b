"""What is one tool? Its definition, kept as the server wrote it, and the parts of it that we act on."""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

MAX_DEFINITION_BYTES = 512 * 1024
MAX_NAME_LENGTH = 128


class Tool(Struct, frozen=True, kw_only=True):
    """One tool of one server."""

    server: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: bytes = b'{"type":"object"}'
    output_schema: bytes | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    definition: bytes = b"{}"
    """The whole definition, byte for byte."""

    @property
    def id(self) -> str:
        """The name by which agents call it."""
        return f"{self.server}:{self.name}"


class _Wire(Struct, rename="camel"):
    name: str
    title: str | None = None
    description: str | None = None
    input_schema: Raw = Raw(b"")
    output_schema: Raw = Raw(b"")
    annotations: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Wire).decode


class BadDefinition(ValueError):
    """A tool that a server lists in a way that cannot be used."""


def parse_tool(server: str, definition: bytes) -> Tool:
    """Read one entry of a `tools/list` answer, or say what is wrong with it."""
    if len(definition) > MAX_DEFINITION_BYTES:
        raise BadDefinition(f"a definition of {len(definition)} bytes is over the limit of {MAX_DEFINITION_BYTES}")
    try:
        wire = _decode(definition)
        definition.decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadDefinition(str(error)) from None
    if not 1 <= len(wire.name) <= MAX_NAME_LENGTH or any(unicodedata.category(c).startswith("C") for c in wire.name):
        raise BadDefinition(f"the name must have 1 to {MAX_NAME_LENGTH} characters and no control characters")
    annotations = wire.annotations or {}
    title = annotations.get("title")
    return Tool(
        server=server,
        name=wire.name,
        title=wire.title or (title if isinstance(title, str) else ""),
        description=wire.description or "",
        input_schema=_schema(wire.input_schema, "inputSchema") or b'{"type":"object"}',
        output_schema=_schema(wire.output_schema, "outputSchema"),
        annotations=annotations,
        definition=definition,
    )


def _schema(raw: Raw, key: str) -> bytes | None:
    data = bytes(raw)
    if data in (b"", b"null"):
        return None
    if not data.startswith(b"{"):
        raise BadDefinition(f"{key} is not an object")
    return data
