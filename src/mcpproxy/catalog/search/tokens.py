"""How many tokens will a model read? A counted estimate of o200k_base that needs no vocabulary and no download.

Calibrated on 3,000 real tool definitions and checked on 3,000 others against the true encoder. With its margin, one
definition comes out 3 % low to 23 % high (1st to 99th percentile), the sum of fifteen 3 to 13 % high.
"""

from __future__ import annotations

import re

MARGIN = 1.08

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TAIL = re.compile(r"(?<=[a-zA-Z]{6})[a-z]")
_CAPITALS = re.compile(r"(?<=[A-Z]{3})[A-Z]")
_DIGITS = re.compile(r"[0-9]{1,3}")
_MARKS = re.compile(r"[!-/:-@\[-`{-~]{1,4}")
_SPACE = re.compile(r"[\r\n\t]\s*|  +")
_OTHER = re.compile(r"[^\x00-\x7f]")
_BLOB = re.compile(r"[A-Za-z0-9+/=]{48,}")
"""Encoded data, of which no longer piece is ever a token."""


def estimate(text: str) -> int:
    """About how many tokens a text takes, rather a little too many than too few."""
    blobs = sum(map(len, _BLOB.findall(text)))
    if blobs:
        text = _BLOB.sub("", text)
    words = 0.92 * len(_WORD.findall(text)) + 0.09 * len(_TAIL.findall(text))
    words += 0.35 * len(_CAPITALS.findall(text))
    signs = 1.2 * len(_DIGITS.findall(text)) + 1.06 * len(_MARKS.findall(text)) + 0.6 * len(_SPACE.findall(text))
    other = 0 if text.isascii() else 0.7 * len(_OTHER.findall(text))
    return int(MARGIN * (words + signs + other + 0.68 * blobs)) + 1
