"""What do the stages of a call lean on? The rooms they ask, in one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from mcpproxy.activity.journal import Journal
    from mcpproxy.calls.cache import TextCache
    from mcpproxy.calls.plans import Plans
    from mcpproxy.catalog.catalog import Catalog
    from mcpproxy.upstream.pool import Pool


class House(Struct, frozen=True, kw_only=True):
    """The rooms that a call passes through."""

    catalog: Catalog
    pool: Pool
    plans: Plans
    cache: TextCache
    journal: Journal
    mask: Callable[[str], str]
    """Takes secrets out of a text."""
