"""How is the index kept in step? One thread takes in what servers change and swaps the whole snapshot."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mcpproxy.arrays import np
from mcpproxy.catalog.search.document import Document, fields_of
from mcpproxy.catalog.search.lexical import Vocabulary
from mcpproxy.catalog.search.rank import Ranking, rank
from mcpproxy.catalog.search.segment import Pace, Segment, build_segment, digests_of
from mcpproxy.catalog.search.select import Hits, select
from mcpproxy.catalog.search.semantic import Encoder, Floats, static_encoder
from mcpproxy.catalog.search.snapshot import Snapshot, join
from mcpproxy.catalog.search.vectors import VectorCache

log = logging.getLogger(__name__)

BATCH = 8
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
        self._read: dict[str, dict[bytes, Floats]] = {}
        """What it has read of them so far."""
        self._pending: dict[str, tuple[Document, ...] | None] = {}
        self._changed = threading.Condition()
        self._busy: Literal["building", "reading"] | None = None
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
            waiting = self._pending or self._busy == "building"
            return self._closed or not (waiting or (deep and (self._unread or self._busy)))

        with self._changed:
            return self._changed.wait_for(settled, timeout)

    def close(self) -> None:
        """Stop building. What is indexed can still be searched."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            atexit.unregister(self.close)

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
                # A native model that loses its thread while the interpreter ends takes the process down with it.
                atexit.register(self.close)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = None
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._pending or self._unread)
                if self._closed:
                    break
                pending, self._pending = self._pending, {}
                self._busy = "building" if pending else "reading"
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
        before = dict(self._segments)
        for server, documents in pending.items():
            if documents is None:
                self._segments.pop(server, None)
                self._unread.pop(server, None)
            elif server not in before or before[server].digests != digests_of(documents, pace):
                self._build(server, documents, pace)
        if self._segments != before:
            self._publish()

    def _build(self, server: str, documents: tuple[Document, ...], pace: Pace) -> None:
        try:
            self._segments[server] = build_segment(server, documents, self._vocabulary, static_encoder(), pace)
        except Exception:  # one server's strange tools must not keep the others from being found
            log.exception("the tools of %r could not be indexed; those known before stay", server)
            return
        if self._deep is not None:
            self._unread[server] = documents
            self._read.pop(server, None)

    def _read_on(self) -> None:
        """Let the larger model read some of one server's tools; whatever is newer comes first."""
        server, documents = next(iter(self._unread.items()))
        digests = self._segments[server].digests
        read = self._read.get(server)
        if read is None:
            read = self._read[server] = self._cache.find(digests) if self._cache is not None else {}
        missing = [pair for pair in zip(digests, documents, strict=True) if pair[0] not in read][:BATCH]
        if missing:
            read.update(self._vectors(missing))
        else:
            rows = [read[digest] for digest in digests]
            self._segments[server] = replace(self._segments[server], deep=np.array(rows, np.float32))
        if not missing or self._deep is None:
            self._unread.pop(server, None)
            self._read.pop(server, None)
            if not self._unread:
                self._publish()

    def _vectors(self, missing: Sequence[tuple[bytes, Document]]) -> dict[bytes, Floats]:
        assert self._deep is not None
        try:
            fresh = {digest: self._deep.tool(fields_of(document)) for digest, document in missing}
        except Exception:
            log.exception("the larger model failed; searching without it until the next start")
            self._deep = None
            self._unread.clear()
            return {}
        if self._cache is not None:
            self._cache.keep(fresh)
        return fresh

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
