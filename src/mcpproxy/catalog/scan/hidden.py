"""Is there more in this text than a person sees? Characters that are not drawn, reorder, blank out or imitate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpproxy.catalog.scan.disguise import LOOKALIKES, is_plain
from mcpproxy.catalog.scan.finding import Severity
from mcpproxy.catalog.scan.pieces import Piece

Remark = tuple[str, Severity, tuple[int, int], str]
"""Rule, severity, span and reason."""

_Rule = tuple[str, Severity, re.Pattern[str], str]

_BLANKS: Final = 60
_VISIBLE: Final[tuple[_Rule, ...]] = (
    (
        "hidden.blank",
        "high",
        re.compile(r"[ \t\xa0]{150}|(?:\n[ \t]{0,8}){30}"),
        "pushes text out of sight with a long stretch of blanks",
    ),
    (
        "hidden.comment",
        "medium",
        re.compile(r"<!--[^>]{0,20}\w"),
        "holds an HTML comment: rendered text leaves it out, a model reads it",
    ),
)
_INVISIBLE: Final[tuple[_Rule, ...]] = (
    (
        "hidden.bidi",
        "high",
        re.compile("[\u202a-\u202e\u2066-\u2069]"),
        "reorders the text on a screen, so that a person reads something else than the model",
    ),
    (
        "hidden.tags",
        "high",
        re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+"),
        "is written in tag characters: a screen draws nothing, a model reads it",
    ),
    (
        "hidden.variations",
        "high",
        re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"),
        "hides data in variation selectors: a screen draws nothing, a model reads it",
    ),
    (
        "hidden.control",
        "high",
        re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]"),
        "holds control characters, which can blank out or rewrite what a terminal shows",
    ),
    (
        "hidden.zero_width",
        "high",
        # Joiners have honest uses between emoji and in scripts such as Persian; next to Latin text they have none.
        re.compile(
            "[\u200b\u2060-\u2064\u180e\u034f\u115f\u1160\u3164\uffa0]|(?<!^)\ufeff"
            "|(?<=[\x00-\u024f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\u024f])|[\u200c\u200d]{2,}"
        ),
        "holds characters of no width, which split words and carry data unseen",
    ),
    (
        "hidden.private",
        "medium",
        re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]"),
        "holds private-use characters, which mean what the server wants them to mean",
    ),
    (
        "hidden.soft",
        "low",
        re.compile("[\xad\u200e\u200f]|^\ufeff"),
        "holds characters that are not drawn",
    ),
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_LATIN: Final = re.compile("[a-zA-Z]")


def hidden_in(piece: Piece) -> Iterator[Remark]:
    """What a person would not see in this text; one remark for each kind."""
    text = piece.text
    if is_plain(text) and len(text) < _BLANKS and "<!--" not in text:
        return
    for rule, severity, pattern, why in _VISIBLE if is_plain(text) else (*_VISIBLE, *_INVISIBLE):
        found = pattern.search(text)
        if found:
            yield rule, severity, found.span(), why
    if not text.isascii():
        yield from _imitated(text)


def _imitated(text: str) -> Iterator[Remark]:
    for found in _WORD.finditer(text):
        word = found[0]
        if not word.isascii() and not LOOKALIKES.isdisjoint(word) and _LATIN.search(word):
            why = "mixes Latin letters with lookalikes of another script, which reads as another word to a machine"
            yield "hidden.lookalike", "high", found.span(), why
            return
