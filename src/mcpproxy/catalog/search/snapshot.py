"""What is indexed now? All servers' segments joined into arrays that never change; a search holds on to one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mcpproxy.arrays import NDArray, np
from mcpproxy.catalog.search.lexical import Ints, Lexicon, Vocabulary, lexicon_of
from mcpproxy.catalog.search.segment import Pace, Segment
from mcpproxy.catalog.search.semantic import Floats
from mcpproxy.catalog.search.spelling import Speller

Key = TypeVar("Key")


@dataclass(frozen=True)
class Snapshot:
    """Everything a search reads."""

    ids: tuple[str, ...]
    lexicon: Lexicon
    servers: Ints
    """The number of each tool's server."""
    sizes: Ints
    """How many tools each server has."""
    kinds: NDArray[np.uint8]
    named: dict[str, tuple[int, ...]]
    """Rows by lower-case name and id."""
    phrases: dict[tuple[str, ...], tuple[int, ...]]
    """Rows by the stems of a name of two words or more."""
    vectors: Floats
    deep: Floats | None
    """Vectors of the larger model; None until it is done with every tool."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def speller(self) -> Speller:
        """Near words; made when the first unknown word is met."""
        return Speller(self.lexicon)


def join(segments: Sequence[Segment], vocabulary: Vocabulary, size: int, pace: Pace) -> Snapshot:
    """Join segments into one snapshot; `size` is the length of a vector."""
    sizes = [len(segment.ids) for segment in segments]
    deep = [segment.deep for segment in segments if segment.deep is not None]
    return Snapshot(
        ids=tuple(tool_id for segment in segments for tool_id in segment.ids),
        lexicon=lexicon_of(vocabulary, [segment.postings for segment in segments], sizes),
        servers=np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        sizes=np.array(sizes, np.int32),
        kinds=np.concatenate([np.empty(0, np.uint8), *(segment.kinds for segment in segments)]),
        named=_rows(pace.over(_names(segments))),
        phrases=_rows(pace.over(_phrases(segments))),
        vectors=np.concatenate([np.empty((0, size), np.float32), *(segment.vectors for segment in segments)]),
        deep=np.concatenate([one for one in deep if len(one)]) if len(deep) == len(segments) and any(sizes) else None,
    )


def _names(segments: Sequence[Segment]) -> Iterator[tuple[str, int]]:
    rows = itertools.count()
    for segment in segments:
        for name, tool_id in zip(segment.names, segment.ids, strict=True):
            row = next(rows)
            yield name, row
            yield tool_id.lower(), row


def _phrases(segments: Sequence[Segment]) -> Iterator[tuple[tuple[str, ...], int]]:
    every = (phrase for segment in segments for phrase in segment.phrases)
    return ((phrase, row) for row, phrase in enumerate(every) if len(phrase) > 1)


def _rows(pairs: Iterable[tuple[Key, int]]) -> dict[Key, tuple[int, ...]]:
    found: dict[Key, tuple[int, ...]] = {}
    for key, row in pairs:
        found[key] = (*found.get(key, ()), row)
    return found
