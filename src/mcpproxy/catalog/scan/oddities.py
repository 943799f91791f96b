"""Is this definition strange in itself? Names that are sentences, hints that contradict the name, text out of reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpproxy.catalog.scan.finding import Finding
from mcpproxy.catalog.scan.neighbours import shape_of
from mcpproxy.catalog.scan.pieces import Piece
from mcpproxy.catalog.scan.subject import Subject

_FEW_WORDS: Final = 5
_MANY_WORDS: Final = 12
_NO_NAME: Final = re.compile(r"[\s,;:!?'\"`/]")
_WORD: Final = re.compile(r"[^\W_]+")
_DESTRUCTIVE: Final = frozenset("delete drop destroy purge wipe erase truncate uninstall format kill".split())


def sentence_names(subject: Subject) -> Iterator[Finding]:
    """A parameter whose name is a sentence, or nothing that can be read: models read names too."""
    for piece in subject.pieces:
        if not piece.is_key or ".properties." not in f".{piece.where}":
            continue
        words = len(_WORD.findall(piece.text[:1000]))
        if words >= (_FEW_WORDS if _NO_NAME.search(piece.text) else _MANY_WORDS):
            why = "is a parameter name that reads as a sentence, where nobody looks for one"
            yield subject.remark("names.sentence", "medium", piece, (0, len(piece.text)), why)
        elif words == 0 and len(piece.text) > 1:
            why = "is a parameter name without a letter"
            yield subject.remark("names.sentence", "medium", piece, (0, len(piece.text)), why)


def lying_hints(subject: Subject) -> Iterator[Finding]:
    """A tool that says it only reads, and is called by what it destroys."""
    annotations = subject.fields.get("annotations")
    if not isinstance(annotations, dict) or annotations.get("readOnlyHint") is not True:
        return
    verb = shape_of(subject.name).partition("_")[0]
    if verb in _DESTRUCTIVE and annotations.get("destructiveHint") is not True:
        piece = Piece("annotations.readOnlyHint", "true")
        why = f"says that it only reads, while its name says '{verb}'"
        yield subject.remark("hints.contradiction", "medium", piece, (0, 4), why)


def unread(subject: Subject) -> Iterator[Finding]:
    """What the scan did not look at."""
    if not subject.complete:
        why = "is too long, too deep or too broken to be scanned whole"
        yield subject.remark("scan.unread", "medium", Piece("", ""), (0, 0), why)
