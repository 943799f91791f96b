"""Which tools fit this question? The search index, kept in step with the catalogue and asked off the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mcpproxy.catalog.listing import Listing
from mcpproxy.catalog.tool import Tool

if TYPE_CHECKING:
    from mcpproxy.catalog.search.document import Document
    from mcpproxy.catalog.search.explanation import Explanation
    from mcpproxy.catalog.search.index import SearchIndex
    from mcpproxy.catalog.search.select import Hits

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_PATIENCE = 2.0
"""How long a question waits for tools that were listed just before it."""


def document_of(tool: Tool) -> Document:
    """A tool as search sees it."""
    from mcpproxy.catalog.search.document import Document

    try:
        schema = msgspec.json.decode(tool.input_schema)
    except (msgspec.MsgspecError, RecursionError):
        schema = {}
    hints = tool.annotations
    read_only, destructive = hints.get("readOnlyHint"), hints.get("destructiveHint")
    return Document(
        id=tool.id,
        server=tool.server,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema,
        read_only=read_only if isinstance(read_only, bool) else None,
        destructive=destructive if isinstance(destructive, bool) else None,
    )


class Finder:
    """Finds tools. One thread makes the index and answers, so that neither start nor calls wait for it."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="finder")
        self._made: SearchIndex | None = None

    def listed(self, listing: Listing | None, server: str) -> None:
        """A server's tools changed, or the server is gone: a watcher for the catalogue."""
        tools = tuple(listing.tools.values()) if listing is not None else None
        self._thread.submit(self._take_in, server, tools)

    def _take_in(self, server: str, tools: tuple[Tool, ...] | None) -> None:
        try:
            if tools is None:
                self._index().drop(server)
            else:
                self._index().put(server, [document_of(tool) for tool in tools])
        except Exception:
            log.exception("the tools of %r could not be made ready for search", server)

    def _index(self) -> SearchIndex:
        if self._made is None:
            # numpy and the word vectors are slow to load; whoever only starts the proxy should not wait for them.
            from mcpproxy.catalog.search.index import SearchIndex
            from mcpproxy.catalog.search.minilm import load_minilm
            from mcpproxy.catalog.search.vectors import VectorCache

            deep = load_minilm()
            cache = VectorCache(self._data_dir / "vectors.db", deep.name) if deep is not None else None
            self._made = SearchIndex(deep=deep, cache=cache)
        return self._made

    async def search(
        self, query: str, limit: int, allow: Callable[[str], bool], usage: Mapping[str, int] | None = None
    ) -> Hits:
        """The best tools among those that `allow` lets through."""
        return await self._ask(partial(self._search, query, limit, allow, usage))

    def _search(self, query: str, limit: int, allow: Callable[[str], bool], usage: Mapping[str, int] | None) -> Hits:
        index = self._index()
        index.settle(_PATIENCE)
        return index.search(query, limit, allow=allow, usage=usage)

    async def explain(
        self,
        query: str,
        tools: Mapping[str, Tool],
        *,
        limit: int,
        allow: Callable[[str], bool],
        usage: Mapping[str, int] | None = None,
        named: str | None = None,
    ) -> list[Explanation]:
        """Why the best of these tools rank where they do, or why the named one does."""
        return await self._ask(partial(self._explain, query, tools, limit=limit, allow=allow, usage=usage, named=named))

    def _explain(
        self,
        query: str,
        tools: Mapping[str, Tool],
        *,
        limit: int,
        allow: Callable[[str], bool],
        usage: Mapping[str, int] | None,
        named: str | None,
    ) -> list[Explanation]:
        from mcpproxy.catalog.search.explain import explain
        from mcpproxy.catalog.search.select import select

        index = self._index()
        index.settle(_PATIENCE)
        ranking = index.rank(query)
        wanted = [named] if named is not None else [hit.id for hit in select(ranking, limit, allow, usage).best]
        return [
            explain(ranking, document_of(tools[one]), limit=limit, allow=allow, usage=usage)
            for one in wanted
            if one in tools
        ]

    async def _ask(self, question: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)

    def close(self) -> None:
        """Stop building and answering. Waits for what is under way: a native library must not lose its thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        if self._made is not None:
            self._made.close()
