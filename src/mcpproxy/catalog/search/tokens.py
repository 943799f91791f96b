"""How many tokens will a model read? A counted estimate of o200k_base that needs no vocabulary and no download.

Calibrated on 3,000 real tool definitions and checked on 3,000 others against the true encoder: one definition is
within 12 % (1st to 99th percentile), the sum of fifteen within 4 %. The margin keeps an answer under its budget.
"""

from __future__ import annotations

import re

MARGIN = 1.04

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TAIL = re.compile(r"(?<=[a-zA-Z]{6})[a-z]")
_DIGITS = re.compile(r"[0-9]{1,3}")
_MARKS = re.compile(r"[!-/:-@\[-`{-~]{1,4}")
_SPACE = re.compile(r"[\r\n\t]\s*|  +")
_OTHER = re.compile(r"[^\x00-\x7f]")


def estimate(text: str) -> int:
    """About how many tokens a text takes, rather a little too many than too few."""
    words = 0.92 * len(_WORD.findall(text)) + 0.09 * len(_TAIL.findall(text))
    signs = 1.2 * len(_DIGITS.findall(text)) + 1.06 * len(_MARKS.findall(text)) + 0.6 * len(_SPACE.findall(text))
    other = 0 if text.isascii() else 0.7 * len(_OTHER.findall(text))
    return int(MARGIN * (words + signs + other)) + 1
