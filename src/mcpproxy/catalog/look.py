"""What is there to know about each definition of a list? Its version and what the scan says, worked out once."""

from __future__ import annotations

import logging
from typing import Final

from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.pins import version_hash
from mcpproxy.catalog.scan.finding import Finding
from mcpproxy.catalog.scan.neighbours import Neighbours

log = logging.getLogger(__name__)

MAX_SCANNED: Final = 1_000
"""Definitions scanned per list; a server that has more news at once is not worth the time of others."""
NOT_SCANNED: Final = Finding("scan.unread", "medium", "", (0, 0), "", "came with too many others at once to be scanned")
STUMBLED: Final = Finding("scan.unread", "medium", "", (0, 0), "", "made the scan itself fail; look at all of it")


class Look:
    """Versions and findings of one list; what an earlier list of the same server had is not worked out again."""

    def __init__(self, live: Listing, neighbours: Neighbours, earlier: Look | None) -> None:
        self._server = live.server
        self._identity = live.identity
        self._own = frozenset(live.tools)
        self._neighbours = neighbours
        same = earlier is not None and earlier._identity == live.identity
        self._earlier = (earlier._hashes, earlier._findings) if earlier is not None and same else ({}, {})
        self._hashes: dict[bytes, str] = {}
        self._findings: dict[bytes, tuple[Finding, ...]] = {}
        self._scanned = 0

    def hash_of(self, definition: bytes) -> str:
        """Names this version of a definition."""
        version = self._hashes.get(definition) or self._earlier[0].get(definition)
        if version is None:
            version = version_hash(self._server, self._identity, definition)
        self._hashes[definition] = version
        return version

    def scan(self, definition: bytes) -> tuple[Finding, ...]:
        """What the scan says about a definition."""
        findings = self._findings.get(definition)
        if findings is None:
            findings = self._earlier[1].get(definition)
        if findings is None or (findings == (NOT_SCANNED,) and self._scanned < MAX_SCANNED):
            self._scanned += 1
            findings = self._fresh(definition) if self._scanned <= MAX_SCANNED else (NOT_SCANNED,)
        self._findings[definition] = findings
        return findings

    def _fresh(self, definition: bytes) -> tuple[Finding, ...]:
        # The rules take a moment to load: the first list in its thread should wait for them, not the start.
        from mcpproxy.catalog.scan.rulebook import scan
        from mcpproxy.catalog.scan.subject import Context

        try:
            return scan(definition, Context(self._server, self._own, self._neighbours))
        except Exception:  # a definition that our own rules stumble over is for a person to look at
            log.exception("a tool of %r could not be scanned", self._server)
            return (STUMBLED,)
