"""Which texts does a definition hold? Every string in it, keys too, wherever it stands, up to a bound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from mcpproxy.catalog.shown import escaped

MAX_TEXT: Final = 48 * 1024
"""Characters read per definition. The longest of 11,000 real ones holds a quarter of that."""
MAX_PIECES: Final = 4_000
MAX_DEPTH: Final = 64
_PATH_LIMIT: Final = 200

# What JSON Schema and MCP themselves call things; any other key was chosen by the server.
_KNOWN_KEYS: Final = frozenset(
    """name title description inputSchema outputSchema annotations icons _meta readOnlyHint destructiveHint
    idempotentHint openWorldHint src mimeType sizes theme execution taskSupport
    $schema $id $ref $defs $comment $anchor $dynamicRef $dynamicAnchor $vocabulary definitions type properties
    required items prefixItems additionalProperties patternProperties unevaluatedProperties unevaluatedItems
    additionalItems propertyNames enum const default examples example format pattern minLength maxLength minimum
    maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems contains minContains
    maxContains minProperties maxProperties anyOf oneOf allOf not if then else dependentRequired dependentSchemas
    dependencies contentEncoding contentMediaType contentSchema readOnly writeOnly deprecated nullable""".split()
)


class Piece(Struct, frozen=True):
    """One text of a definition."""

    where: str
    text: str
    is_key: bool = False


class Pieces(Struct, frozen=True):
    """The texts of one definition, and whether they are all of them."""

    pieces: tuple[Piece, ...]
    complete: bool


def pieces_of(definition: bytes) -> Pieces:
    """Every text of a definition in the order in which it stands there; duplicate keys are all kept."""
    try:
        tree = json.loads(definition, object_pairs_hook=tuple, parse_int=_nothing, parse_float=_nothing)
    except (ValueError, RecursionError):
        return Pieces((), complete=False)
    found: list[Piece] = []
    room = MAX_TEXT
    for piece in _walk(tree, "", 0):
        if piece is None or len(found) == MAX_PIECES or room < len(piece.text):
            if piece is not None and room > 0:
                found.append(Piece(piece.where, piece.text[:room], piece.is_key))
            return Pieces(tuple(found), complete=False)
        room -= len(piece.text)
        found.append(piece)
    return Pieces(tuple(found), complete=True)


def _walk(value: Any, where: str, depth: int) -> Iterator[Piece | None]:
    """The texts below a value; None where it is nested too deeply to be read."""
    if isinstance(value, str):
        yield Piece(where, value)
    elif depth >= MAX_DEPTH:
        if value is not None and not isinstance(value, bool):
            yield None
    elif isinstance(value, tuple):  # an object: its pairs, as json read them
        for key, item in value:
            path = f"{where}.{escaped(key, 40)}"[-_PATH_LIMIT:] if where else escaped(key, 40)
            if key not in _KNOWN_KEYS:
                yield Piece(path, key, is_key=True)
            yield from _walk(item, path, depth + 1)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _walk(item, f"{where}[{position}]", depth + 1)


def _nothing(_number: str) -> None:
    """Numbers hold no text, and a long one need not be worked out."""
    return None
