"""What is looked at? One definition, taken apart once for all rules: its texts, how they read, and their words."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from mcpproxy.catalog.scan.disguise import Reading, readings_of
from mcpproxy.catalog.scan.encoded import decoded
from mcpproxy.catalog.scan.finding import Finding, Severity
from mcpproxy.catalog.scan.lexicon import KINDS, PAIRS, SHAPES
from mcpproxy.catalog.scan.neighbours import NOBODY, Neighbours
from mcpproxy.catalog.scan.phrases import Lexicon, Phrasebook, Token
from mcpproxy.catalog.scan.pieces import Piece, pieces_of
from mcpproxy.catalog.scan.wording.data import DATA
from mcpproxy.catalog.scan.wording.orders import ORDERS
from mcpproxy.catalog.scan.wording.secrecy import SECRECY
from mcpproxy.catalog.scan.wording.tools import TOOLS
from mcpproxy.catalog.shown import escaped

_EXCERPT: Final = 120
_AROUND: Final = 20
_SHORT: Final = 40
_NAME: Final = re.compile(r"[A-Za-z0-9$]*+(?:[_.-][A-Za-z0-9]++){0,2}")

PHRASEBOOK: Final = Phrasebook(Lexicon(KINDS, PAIRS, SHAPES), (*ORDERS, *SECRECY, *DATA, *TOOLS))


class Context(Struct, frozen=True):
    """What stands around a definition."""

    server: str = ""
    own: frozenset[str] = frozenset()
    """The names of the server's own tools."""
    neighbours: Neighbours = NOBODY
    """The tools of all servers."""


ALONE: Final = Context()
"""For a definition of which nothing else is known."""


class Subject:
    """One definition."""

    def __init__(self, definition: bytes, context: Context) -> None:
        self.context = context
        self.definition = definition
        taken = pieces_of(definition)
        self.pieces = taken.pieces
        self.complete = taken.complete

    @cached_property
    def readings(self) -> list[tuple[Reading, list[Token]]]:
        """Every way to read every text, with its words: as it stands, undisguised, decoded."""
        tokens = PHRASEBOOK.lexicon.tokens
        found: list[tuple[Reading, list[Token]]] = []
        for piece in self.pieces:
            if len(piece.text) <= _SHORT and _NAME.fullmatch(piece.text):
                continue  # a word or a short name says nothing to anyone
            for reading in readings_of(piece):
                found.append((reading, tokens(reading)))
                found.extend((code, tokens(code)) for code in decoded(reading))
        return found

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The top of the definition, decoded; later duplicates win, as with most readers."""
        try:
            value = json.loads(self.definition)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def name(self) -> str:
        """The tool's name."""
        name = self.fields.get("name")
        return name if isinstance(name, str) else ""

    def remark(self, rule: str, severity: Severity, piece: Piece, span: tuple[int, int], why: str) -> Finding:
        """A finding about a place in one of the texts."""
        start, end = span
        begin = max(0, start - _AROUND)
        cut = piece.text[begin : max(end, begin + 60)]
        return Finding(rule, severity, piece.where, span, escaped(cut, _EXCERPT), why)
