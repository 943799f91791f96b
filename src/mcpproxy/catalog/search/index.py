"""How is the index kept in step? One thread takes in what servers change and swaps the whole snapshot."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mcpproxy.catalog.search.arrays import np
from mcpproxy.catalog.search.document import Document, fields_of
from mcpproxy.catalog.search.lexical import Vocabulary
from mcpproxy.catalog.search.rank import Ranking, rank
from mcpproxy.catalog.search.segment import Pace, Segment, build_segment, digests_of
from mcpproxy.catalog.search.select import Hits, select
from mcpproxy.catalog.search.semantic import Encoder, Floats, static_encoder
from mcpproxy.catalog.search.snapshot import Snapshot, join
from mcpproxy.catalog.search.vectors import VectorCache

log = logging.getLogger(__name__)

BATCH = 16
"""Tools that the larger model reads before it looks for newer work."""
SPARE_STEMS = 50_000
"""Stems of servers long gone that may stay numbered before the vocabulary is made anew."""


class SearchIndex:
    """Search over the tools of all servers. Any thread may search; one thread of its own builds."""

    def __init__(self, *, deep: Encoder | None = None, cache: VectorCache | None = None) -> None:
        self._deep = deep
        self._cache = cache
        self._vocabulary = Vocabulary()
        self._segments: dict[str, Segment] = {}
        self._unread: dict[str, tuple[Document, ...]] = {}
        """Tools that the larger model has still to read, by server."""
        self._read: dict[bytes, Floats] = {}
        """What it has read of the first of them."""
        self._pending: dict[str, tuple[Document, ...] | None] = {}
        self._changed = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._snapshot: Snapshot | None = None

    @property
    def snapshot(self) -> Snapshot:
        """What is indexed now."""
        if self._snapshot is None:
            self._snapshot = join((), self._vocabulary, static_encoder().size, Pace())
        return self._snapshot

    def put(self, server: str, documents: Sequence[Document]) -> None:
        """A server has these tools now. Returns at once; the change shows in one piece when it is indexed."""
        self._enqueue(server, tuple(documents))

    def drop(self, server: str) -> None:
        """A server is gone, or its tools may not be shown."""
        self._enqueue(server, None)

    def settle(self, timeout: float | None = None, *, deep: bool = False) -> bool:
        """Wait until every change handed in so far can be found; False when the time is over first.

        With `deep`, also until the larger model has read every tool.
        """

        def settled() -> bool:
            return self._closed or not (self._pending or self._busy or (deep and self._unread))

        with self._changed:
            return self._changed.wait_for(settled, timeout)

    def close(self) -> None:
        """Stop building. What is indexed can still be searched."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def rank(self, query: str) -> Ranking:
        """Every tool's standing for a query, for `search` and `explain`."""
        return rank(self.snapshot, query, self._deep)

    def search(
        self,
        query: str,
        limit: int = 15,
        *,
        allow: Callable[[str], bool] | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> Hits:
        """The best tools for a query, best first. `allow` sees ids; `usage` (calls by id) settles near ties.

        An empty query, or one without a word, finds nothing. With the larger model a search takes a few
        milliseconds: call it off the event loop.
        """
        return select(self.rank(query), limit, allow, usage)

    def _enqueue(self, server: str, documents: tuple[Document, ...] | None) -> None:
        with self._changed:
            if self._closed:
                return
            self._pending[server] = documents
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mcpproxy-search", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._pending or self._unread)
                if self._closed:
                    break
                pending, self._pending = self._pending, {}
                self._busy = bool(pending)
            try:
                if pending:
                    self._take_in(pending)
                else:
                    self._read_on()
            except Exception:  # the thread must live: a search over the last good index beats none
                log.exception("the search index could not be brought up to date")
        if self._cache is not None:
            self._cache.close()

    def _take_in(self, pending: Mapping[str, tuple[Document, ...] | None]) -> None:
        pace = Pace()
        changed = False
        for server, documents in pending.items():
            before = self._segments.get(server)
            if documents is None:
                self._unread.pop(server, None)
                changed |= self._segments.pop(server, None) is not None
            elif before is None or before.digests != digests_of(documents, pace):
                self._segments[server] = build_segment(server, documents, self._vocabulary, static_encoder(), pace)
                if self._deep is not None:
                    self._unread[server] = documents
                changed = True
        if changed:
            self._publish()

    def _read_on(self) -> None:
        """Let the larger model read some of one server's tools; whatever is newer comes first."""
        server, documents = next(iter(self._unread.items()))
        assert self._deep is not None
        digests = self._segments[server].digests
        if self._cache is not None:
            self._read.update(self._cache.find(digest for digest in digests if digest not in self._read))
        missing = {digest: one for digest, one in zip(digests, documents, strict=True) if digest not in self._read}
        batch = dict(list(missing.items())[:BATCH])
        fresh = {digest: self._deep.tool(fields_of(document)) for digest, document in batch.items()}
        self._read.update(fresh)
        if fresh and self._cache is not None:
            self._cache.keep(fresh)
        if len(batch) < len(missing):
            return
        deep = (
            np.stack([self._read[digest] for digest in digests])
            if digests
            else np.empty((0, self._deep.size), np.float32)
        )
        self._segments[server] = replace(self._segments[server], deep=deep)
        del self._unread[server]
        self._read.clear()
        if not self._unread:
            self._publish()

    def _publish(self) -> None:
        self._renumber()
        ordered = [self._segments[name] for name in sorted(self._segments)]
        self._snapshot = join(ordered, self._vocabulary, static_encoder().size, Pace())

    def _renumber(self) -> None:
        """Make the vocabulary anew when most of it belongs to tools that are gone."""
        held = sum(len(segment.postings.numbers) for segment in self._segments.values())
        if len(self._vocabulary) <= held + SPARE_STEMS:
            return
        fresh = Vocabulary()
        for name, segment in self._segments.items():
            numbers = [fresh.number(self._vocabulary.stems[number]) for number in segment.postings.numbers]
            postings = segment.postings._replace(numbers=np.array(numbers, np.int32))
            self._segments[name] = replace(segment, postings=postings)
        self._vocabulary = fresh
