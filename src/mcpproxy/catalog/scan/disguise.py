"""What does a text say once its disguises are off? Invisible characters dropped, lookalike letters read as meant."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from mcpproxy.catalog.scan.pieces import Piece
from mcpproxy.catalog.shown import is_hidden

_CYRILLIC: Final = dict(zip("аеорсухіјѕԁһґӏԛԝАВЕЗКМНОРСТУХІЈЅ", "aeopcyxijsdhrlqwAB" + "E3KMHOPCTYXIJS", strict=True))
_GREEK: Final = dict(zip("ονρυαιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ovpuaiABEZHIKMNOPTYX", strict=True))  # noqa: RUF001
LOOKALIKES: Final = frozenset(_CYRILLIC) | frozenset(_GREEK)
"""Letters of other scripts that look like Latin ones."""

_MOST: Final = 20
_PLAIN: Final = re.compile(r"[\t\n\r -~]*")
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]{0,20}[ -/]{0,4}[@-~]|[@-Z\\-_])|\x9b[0-?]{0,20}[@-~]")
_RIGHT_TO_LEFT: Final = re.compile("\u202e([^\u202c\u202d\u202e]+)")
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{2,}")
_VARIATIONS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")


class Reading(Struct, frozen=True):
    """One way to read a piece."""

    piece: Piece
    text: str
    offsets: tuple[int, ...] | None = None
    """Where each character stands in the piece; None where it is the same place."""
    whole: tuple[int, int] | None = None
    """The place of all of it, where the characters have no places of their own."""
    disguise: str | None = None
    """How it was hidden; None for what is plain to see."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the piece of a place in this reading."""
        if self.whole is not None:
            return self.whole
        if self.offsets is None:
            return start, end
        return self.offsets[start], self.offsets[end - 1] + 1


def readings_of(piece: Piece) -> Iterator[Reading]:
    """The piece as it is meant to be read, and whatever is written in it with characters that are not drawn."""
    text = piece.text
    if is_plain(text):
        yield Reading(piece, text)
        return
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub(lambda found: "\0" * len(found[0]), text)
    kept = [place for place, char in enumerate(text) if char in "\n\t\r" or not is_hidden(char)]
    plain = text.translate(_FOLD)
    if len(kept) == len(text):
        yield Reading(piece, plain)
    elif kept:
        yield Reading(piece, "".join([plain[place] for place in kept]), tuple(kept))
    yield from _drawn_as_nothing(piece)


def is_plain(text: str) -> bool:
    """Whether all of it is drawn, and as nothing else than it is."""
    return text.isascii() and _PLAIN.fullmatch(text) is not None


def _drawn_as_nothing(piece: Piece) -> Iterator[Reading]:
    for found in islice(_RIGHT_TO_LEFT.finditer(piece.text), _MOST):
        yield Reading(piece, found[1][::-1], whole=found.span(), disguise="written backwards")
    for found in islice(_TAGS.finditer(piece.text), _MOST):
        text = "".join(chr(ord(char) - 0xE0000) for char in found[0])
        yield Reading(piece, text, whole=found.span(), disguise="written in tag characters")
    for found in islice(_VARIATIONS.finditer(piece.text), _MOST):
        code = bytes(ord(c) - (0xFE00 if ord(c) < 0xFE10 else 0xE0100 - 16) for c in found[0])
        text = code.decode("utf-8", "replace")
        yield Reading(piece, text, whole=found.span(), disguise="written in variation selectors")


def _fold_table() -> dict[int, str]:
    table = {ord(char): latin for char, latin in (_CYRILLIC | _GREEK).items()}
    styled = (range(0xC0, 0x250), range(0x2100, 0x2150), range(0x24B6, 0x24EA), range(0xFF01, 0xFF5F))
    for codes in (*styled, range(0x1D400, 0x1D800)):
        for code in codes:
            meant = unicodedata.normalize("NFKD", chr(code))[:1]
            if meant.isascii() and meant:
                table[code] = meant
    table |= {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2010: "-", 0x2011: "-"}
    table |= dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")
    return table


_FOLD: Final = _fold_table()


def folded(text: str) -> str:
    """The text with lookalike, styled and accented letters read as the Latin ones they stand for."""
    return text.translate(_FOLD)
