"""Which tools fit a question, and why? The same search as an agent's, and its reasons."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from mcpproxy.cli import looks
from mcpproxy.cli.screen import Cell, Column, value_of
from mcpproxy.cli.tools.listing import kind_of
from mcpproxy.cli.tools.shelf import listings, waiting_states

if TYPE_CHECKING:
    from mcpproxy.catalog.finder import Finder
    from mcpproxy.catalog.search.explanation import Explanation
    from mcpproxy.catalog.tool import Tool
    from mcpproxy.cli.screen import Screen
    from mcpproxy.cli.session import Session

_COLUMNS: Final = (
    Column("TOOL", gives=1),
    Column("CALL WITH"),
    Column("SCORE", right=True),
    Column("DESCRIPTION", gives=2),
)
_BAR: Final = 20


def search(session: Session, query: str, limit: int | None) -> Raw:
    """The best tools for a question, from the daemon or without it."""
    if session.daemon is not None:
        return session.daemon.get("/tools/search", {"q": query, "limit": limit})
    return asyncio.run(_search(session, query, limit or session.config.tools_limit))


async def _search(session: Session, query: str, limit: int) -> Raw:
    from mcpproxy.agent.tools import describe

    tools, finder = await asyncio.to_thread(_index, session)
    try:
        hits = await finder.search(query, limit, lambda _: True)
    finally:
        finder.close()
    found = [describe(tools[hit.id], session.config) | {"score": hit.score} for hit in hits.best]
    return Raw(msgspec.json.encode({"tools": found, "query": query, "total": hits.total}))


def explain(session: Session, query: str, limit: int | None, named: str | None) -> list[Explanation]:
    """Why the best tools rank where they do, or why a named one does, or is not found."""
    from mcpproxy.catalog.search.explanation import Explanation

    if session.daemon is not None:
        found = value_of(session.daemon.get("/tools/explain", {"q": query, "limit": limit, "tool": named}))
        return msgspec.convert(found["tools"], list[Explanation])
    return asyncio.run(_explain(session, query, limit or session.config.tools_limit, named))


async def _explain(session: Session, query: str, limit: int, named: str | None) -> list[Explanation]:
    tools, finder = await asyncio.to_thread(_index, session)
    try:
        if named is not None and named not in tools:
            return [await asyncio.to_thread(_hidden, session, named)]
        return await finder.explain(query, tools, limit=limit, allow=lambda _: True, named=named)
    finally:
        finder.close()


def _index(session: Session) -> tuple[dict[str, Tool], Finder]:
    from mcpproxy.catalog.finder import Finder

    finder = Finder(session.data_dir)
    tools: dict[str, Tool] = {}
    for name, listing in listings(session).items():
        finder.listed(listing, name)
        tools |= {tool.id: tool for tool in listing.tools.values()}
    return tools, finder


def _hidden(session: Session, name: str) -> Explanation:
    from mcpproxy.catalog.hidden import why_hidden
    from mcpproxy.catalog.search.explanation import absent
    from mcpproxy.cli.errors import FAILED, Failure

    why = why_hidden(name, session.config.servers, listings(session), waiting_states(session).get(name))
    if why is None:
        message = f"there is no tool {name!r}."
        raise Failure(FAILED, message, "See what there is: mcpproxy tools list", code="UNKNOWN_TOOL")
    return absent(name, why)


def print_hits(screen: Screen, found: dict[str, Any]) -> None:
    """Print hits, best first."""
    from mcpproxy.catalog.search.signature import first_sentence

    rows = [
        [
            Cell(tool["name"], style="bold"),
            kind_of(tool),
            Cell(f"{tool['score']:.2f}"),
            Cell(" ".join(tool["description"].split()), first_sentence(tool["description"])),
        ]
        for tool in found["tools"]
    ]
    screen.rows(_COLUMNS, rows)
    if screen.pretty and not rows:
        screen.note(found.get("note") or "Nothing fits. All there is: mcpproxy tools list")
    elif screen.pretty and found["total"] > len(rows):
        screen.note(f"{len(rows)} of {found['total']:,}. More: -n {min(found['total'], 100)}")


def print_explanations(screen: Screen, found: list[Explanation]) -> None:
    """Print why each tool ranks where it does."""
    from mcpproxy.catalog.search.explanation import EVIDENCE

    for place, one in enumerate(found):
        if place:
            screen.write("")
        screen.line((one.id, "bold"), f"  {one.reason}")
        strongest = max((abs(value) for value in one.evidence.values()), default=0) or 1
        for name, value in sorted(one.evidence.items(), key=lambda item: -abs(item[1])):
            if value:
                drawn = looks.bar(abs(value) / strongest, _BAR) if screen.terminal else ""
                bar = f" {drawn:<{_BAR}}" if screen.terminal else ""
                screen.line(
                    f"  {value:>+7.2f}", (bar, "green" if value > 0 else "red"), f"  {EVIDENCE.get(name, name)}"
                )
        for match in one.matches:
            places = ", ".join(f"{field} {points:.2f}" for field, points in match.fields.items())
            screen.line("           ", (match.stem, "cyan"), f" ({match.because}) in {places}")
