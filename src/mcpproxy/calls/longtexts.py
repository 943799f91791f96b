"""Where are the parts of a result with long texts in it? Found from quote to quote, at the speed of memory.

An image or a file comes as one string of a megabyte. A parser that goes through it byte by byte takes longer than
all else that is done with the result.
"""

from __future__ import annotations

from typing import NamedTuple

from mcpproxy.outputs.strings import strings

LARGE = 65_536
"""From this size of a result on it pays."""
_LONG = 32_768
"""A parser is through a shorter string before it is found to be plain."""
_PER_QUOTE = 4096
"""A result with a quote more often than this has mostly short strings, and its parser is faster."""
_MOST_LEFT = 4096
"""What is left is read into objects, which takes many times longer than to go through it."""
_FIRST_PRINTABLE = 0x20


class Bare(NamedTuple):
    """A result with nothing in its long strings, and how much is gone at which place of it."""

    text: bytes
    gone: list[tuple[int, int]]

    def place(self, at: int) -> int:
        """Where in the result itself this place is."""
        return at + sum(size for place, size in self.gone if place <= at)


def bare_of(result: bytes) -> Bare | None:
    """The result without its long strings, those that are as plain as can be; None where much else is in it."""
    found = strings(result, len(result) // _PER_QUOTE)
    if found is None:
        return None
    long = [(start, end) for start, end in found if end - start > _LONG and _is_plain(result, start + 1, end - 1)]
    if len(result) - sum(end - start for start, end in long) > _MOST_LEFT:
        return None
    kept: list[bytes] = []
    gone: list[tuple[int, int]] = []
    at = length = 0
    for start, end in long:
        kept.append(result[at : start + 1])
        length += start + 1 - at
        gone.append((length, end - start - 2))
        at = end - 1
    kept.append(result[at:])
    return Bare(b"".join(kept), gone)


def _is_plain(result: bytes, start: int, end: int) -> bool:
    """Whether these bytes stand for themselves in a string: nothing is escaped, and nothing would have to be."""
    from mcpproxy.arrays import np  # not before it is needed: most results are short

    if result.find(b"\\", start, end) >= 0:
        return False
    return bool(np.frombuffer(result, np.uint8, end - start, start).min() >= _FIRST_PRINTABLE)
