"""Which words does a text hold? Identifiers split, accents folded, English words stemmed, filler words left out."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

MAX_WORD = 40
"""Longer runs are keys, hashes and encoded files, never words somebody searches for."""
MAX_QUERY = 2000
MAX_QUERY_WORDS = 100

STOP = frozenset(
    "a an and are as at be by for from has have i in is it its me my of on or our so that the their them these they "
    "this those to was we were what when where which who will with you your can could please would should do does "
    "did if into about not no but also than then there here how all any some need want help using use used via s "
    "am been being he she his her him us may might must just im ive dont lets let".split()
)

_RUN = re.compile(r"[^\W_]+")
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=[0-9])|(?<=[0-9])(?=[^\W\d_])")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
"""Scripts written without spaces: matched by pairs of characters."""


def split(text: str) -> list[str]:
    """Lower-case words in order: `getHTTPStatus2` gives get, http, status, 2. Overlong runs are dropped."""
    return [part.lower() for run in _RUN.findall(text) if len(run) <= MAX_WORD for part in _parts(run)]


def terms(text: str) -> list[str]:
    """The stems that stand for a text in the index, in order and with repeats."""
    found: list[str] = []
    for run in _RUN.findall(fold(text)):
        if _UNSPACED.match(run):
            found.extend(_pairs(run))
        elif len(run) <= MAX_WORD:
            parts = _parts(run)
            found.extend(stem(part.lower()) for part in parts if part.lower() not in STOP)
            if parts != [run]:
                found.append(stem(run.lower()))
    return found


def _parts(run: str) -> list[str]:
    if run.isalpha() and (run.islower() or run[1:].islower()):
        return [run]
    parts = _SEAM.split(run)
    if len(parts) > 4 or (len(parts) > 2 and len(run) < 2.5 * len(parts)):
        # A hash or an encoded blob falls apart into single letters and digits, which would match anything.
        return [part for part in parts if len(part) > 2] or [run]
    return parts


def name_stems(name: str) -> tuple[str, ...]:
    """The stems of a name's parts in order: what a query that mentions the name holds side by side."""
    return tuple(stem(word) for word in split(fold(name)) if word not in STOP)


def fold(text: str) -> str:
    """Letters without their accents, and one form of each character."""
    if text.isascii():
        return text
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", plain)


def query_text(query: str) -> str:
    """The part of a query that is read: overlong runs out first, so that a pasted blob does not push out the words."""
    if len(query) > MAX_QUERY:
        query = " ".join(word for word in query[: MAX_QUERY * 20].split() if len(word) <= MAX_WORD * 2)
    return query[:MAX_QUERY]


@lru_cache(maxsize=32768)
def stem(word: str) -> str:
    """The English stem of a lower-case word."""
    if not word.isascii():
        return word
    if not hasattr(_local, "stem"):
        # Imported on first use: commands that never search must not pay for it. One per thread: it keeps state.
        from Stemmer import Stemmer

        _local.stem = Stemmer("english", 0).stemWord  # what it found is remembered here
    return str(_local.stem(word))


_local = threading.local()


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]
