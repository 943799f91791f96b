"""What does search keep of one server? Its tools' words, vectors and names, packed once and never changed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mcpproxy.arrays import NDArray, np
from mcpproxy.catalog.search.document import Document, Fields, fields_of, fingerprint
from mcpproxy.catalog.search.lexical import Postings, Vocabulary, impacts_of, postings_of
from mcpproxy.catalog.search.semantic import Encoder, Floats
from mcpproxy.catalog.search.verbs import kinds_of_tool
from mcpproxy.catalog.search.words import name_stems

Item = TypeVar("Item")

WORK, REST = 0.001, 0.0005
"""Seconds of building at a stretch, and of leaving the interpreter to others after it."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One server's part of the index."""

    server: str
    ids: tuple[str, ...]
    names: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...]
    digests: tuple[bytes, ...]
    kinds: NDArray[np.uint8]
    postings: Postings
    vectors: Floats
    deep: Floats | None = field(default=None)
    """Vectors of the larger model, where it is installed and done with this server."""


class Pace:
    """Lets others have the interpreter every millisecond, so that building in the background delays no call."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """The same items, with a rest whenever one is due."""
        for item in items:
            yield item
            if time.perf_counter() - self._since > WORK:
                time.sleep(REST)
                self._since = time.perf_counter()


def build_segment(
    server: str, documents: Sequence[Document], vocabulary: Vocabulary, encoder: Encoder, pace: Pace
) -> Segment:
    """Index the tools of one server."""
    vectors = np.zeros((len(documents), encoder.size), np.float32)
    impacts, digests = [], []
    for row, document in enumerate(pace.over(documents)):
        fields = fields_of(document)
        impacts.append(impacts_of(fields))
        vectors[row] = encoder.tool(fields)
        digests.append(digest_of(document, fields))
    return Segment(
        server=server,
        ids=tuple(document.id for document in documents),
        names=tuple(document.name.lower() for document in documents),
        phrases=tuple(name_stems(document.name) for document in pace.over(documents)),
        digests=tuple(digests),
        kinds=np.array([kinds_of_tool(document) for document in pace.over(documents)], np.uint8),
        postings=postings_of(pace.over(impacts), vocabulary),
        vectors=vectors,
    )


def digests_of(documents: Sequence[Document], pace: Pace) -> tuple[bytes, ...]:
    """The hashes of some tools."""
    return tuple(digest_of(document, fields_of(document)) for document in pace.over(documents))


def digest_of(document: Document, fields: Fields) -> bytes:
    """A hash of everything about a tool that its place in the index depends on."""
    return fingerprint(
        document.id,
        fields.title,
        fields.description,
        fields.parameters,
        fields.parameter_texts,
        f"{document.read_only}{document.destructive}",
    )
