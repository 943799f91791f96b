"""Is this payload small and shallow enough to decode? Answered on the raw bytes, before anything is decoded."""

from __future__ import annotations

from itertools import accumulate

from mcpproxy.outputs.strings import strings

_PAIRED = b"[]"
# One kind of bracket is enough to count levels, and it halves the passes over the bytes.
_ONE_KIND = bytes.maketrans(b"{}", _PAIRED)
_NOT_NESTING = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_NOT_MARKS = bytes(byte for byte in range(256) if byte not in b'",[]{}')
_NOT_COLON = bytes(byte for byte in range(256) if byte not in b'":')
_LARGE = 2_048
_FEW_QUOTES = 4
_PER_QUOTE = 1_024
"""In a payload with more quotes than those few and one in so many bytes, a look at each byte takes less time."""
_STEP = {_PAIRED[0]: 1, _PAIRED[1]: -1}
# Each round removes the innermost level of everything at the speed of memory; real payloads end here.
_ROUNDS = 8
# Counting what is left one by one holds the interpreter; in slices other threads get their turn.
_SLICE = 65_536


def too_deep(raw: bytes, limit: int) -> bool:
    """Say whether arrays and objects nest deeper than `limit`. Exact for well-formed JSON, never raises."""
    raw = without_long_texts(raw)
    if raw.count(b"[") + raw.count(b"{") <= limit:
        return False
    marks = _outside_strings(raw, _NOT_NESTING)
    rounds = min(limit, _ROUNDS)
    for _ in range(rounds):
        if not marks:
            return False
        marks = marks.replace(_PAIRED, b"")
    return _climbs_above(marks, limit - rounds)


def count_marks(raw: bytes) -> int:
    """Count the commas and brackets outside strings, which tell how many values there are to decode."""
    return len(_outside_strings(without_long_texts(raw), _NOT_MARKS))


def count_keys(raw: bytes) -> int:
    """Count the object members as written: repeated keys count each time."""
    return len(_outside_strings(raw, _NOT_COLON))


def without_long_texts(raw: bytes) -> bytes:
    """What stands outside the strings of a large payload, where it has only a few strings; otherwise all of it."""
    found = strings(raw, _FEW_QUOTES + len(raw) // _PER_QUOTE) if len(raw) >= _LARGE else None
    if found is None:
        return raw
    outside: list[bytes] = []
    at = 0
    for start, end in found:
        outside.append(raw[at:start])
        at = end
    outside.append(raw[at:])
    return b"".join(outside)


def _climbs_above(marks: bytes, limit: int) -> bool:
    level = 0
    for start in range(0, len(marks), _SLICE):
        levels = list(accumulate(map(_STEP.__getitem__, marks[start : start + _SLICE]), initial=level))
        if max(levels) > limit:
            return True
        level = levels[-1]
    return False


def _outside_strings(raw: bytes, unwanted: bytes) -> bytes:
    """Drop every string and every unwanted byte; braces come back as brackets.

    A string's own quotes toggle inside and outside, so taking away two quotes that stand side by side
    changes nothing for the rest. Backslashes occur in strings only: pairs of them go first, then
    escaped quotes.
    """
    if b"\\\\" in raw:
        raw = raw.replace(b"\\\\", b"")
    if b'\\"' in raw:
        raw = raw.replace(b'\\"', b"")
    marks = raw.translate(_ONE_KIND, unwanted).replace(b'""', b"")
    if b'"' in marks:
        marks = b"".join(marks.split(b'"')[::2])
    return marks
