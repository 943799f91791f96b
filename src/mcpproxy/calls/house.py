"""What do the stages of a call lean on? The rooms they ask, in one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from mcpproxy.calls.cache import TextCache
from mcpproxy.calls.plans import Plans
from mcpproxy.outputs.apart import Apart

if TYPE_CHECKING:
    from mcpproxy.activity.journal import Journal
    from mcpproxy.catalog.catalog import Catalog
    from mcpproxy.catalog.finder import Finder
    from mcpproxy.upstream.pool import Pool


class House(Struct, frozen=True, kw_only=True):
    """The rooms that a call passes through."""

    catalog: Catalog
    finder: Finder
    pool: Pool
    journal: Journal
    mask: Callable[[str], str]
    """Takes secrets out of a text."""
    plans: Plans = field(default_factory=Plans)
    cache: TextCache = field(default_factory=TextCache)
    apart: Apart = field(default_factory=Apart)
    usage: Counter[str] = field(default_factory=Counter)
    """How often each tool was called since the start: settles near ties in a search."""
