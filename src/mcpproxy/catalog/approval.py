"""May this tool be used? What was decided about a server's tools is held against what it lists now. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from mcpproxy.catalog.diff import Difference, diff, is_rewording
from mcpproxy.catalog.listing import MAX_TOOLS, Listing
from mcpproxy.catalog.pins import INSTRUCTIONS, instructions_definition
from mcpproxy.catalog.scan.finding import Finding, is_clean
from mcpproxy.catalog.tool import BadDefinition, Tool, parse_tool

State = Literal["pending", "changed", "rejected"]
"""New on a known server; other than approved; refused by a person in exactly this form."""
Trust = Literal["first_use", "manual", "scan"]

FIRST_USE: Final = "first_use"
SCAN: Final = "scan"
AUTOMATIC: Final = (FIRST_USE, SCAN)
"""Who approves where no person does."""


class Pin(Struct, frozen=True, kw_only=True):
    """What was decided about one tool."""

    hash: str | None = None
    """The version that may be used; None where none may."""
    definition: bytes = b""
    approved_by: str = ""
    approved_at: float = 0.0
    refused: str | None = None
    """The version that a person refused. Until a person approves one, none is approved without a person."""


class Book(Struct, frozen=True, kw_only=True):
    """What was decided about one server: its name and what it is, both."""

    server: str
    identity: str
    known: bool = False
    """Whether its first list was taken."""
    held: bool = False
    """Whether it was quarantined, and nobody has approved all of it since."""
    released_by: str | None = None
    pins: Mapping[str, Pin] = field(default_factory=dict)
    barred: frozenset[str] = frozenset()
    """Tools that a person refused when this name stood for another command or address."""


class Approval(Struct, frozen=True, kw_only=True):
    """One version of one tool that may be used from now on."""

    tool: str
    hash: str
    definition: bytes
    by: str


class Waiting(Struct, frozen=True, kw_only=True, dict=True):
    """A tool that may not be used as it is now. For operators only: all of it is the server's own text."""

    server: str
    tool: str
    state: State
    hash: str
    """Names this version: an approval must repeat it."""
    live: bytes
    approved: bytes | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def id(self) -> str:
        """The name by which it would be called; it ends with the colon for a server's instructions."""
        return f"{self.server}:{self.tool}"

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """What changed since it was approved."""
        return diff(self.approved, self.live) if self.approved is not None else ()


class Sorted(Struct, frozen=True, kw_only=True):
    """A list, taken apart."""

    listing: Listing
    """What agents may see and call, as it was approved."""
    waiting: Mapping[str, Waiting] = MappingProxyType({})
    """By tool name."""


Scan = Callable[[bytes], tuple[Finding, ...]]
"""Looks at a definition."""
HashOf = Callable[[bytes], str]
"""Names a version of a definition."""


class _Part(Struct, frozen=True):
    """One thing in a list that can be approved, with what was decided about it."""

    tool: str
    definition: bytes
    version: str
    pin: Pin | None

    @property
    def approved(self) -> bool:
        return self.pin is not None and self.pin.hash == self.version


def self_approved(live: Listing, book: Book, trust: Trust, scan: Scan, hash_of: HashOf) -> Iterator[Approval]:
    """What needs no person: a first list that is trusted as such, and what a scan is trusted to judge."""
    room = MAX_TOOLS - len(book.pins)
    for part in _parts(live, book, hash_of):
        refused = part.tool in book.barred or (part.pin is not None and part.pin.refused is not None)
        if part.approved or refused or room <= 0:
            continue
        by = _approver(part, book, trust, scan)
        if by is not None:
            room -= 1
            yield Approval(tool=part.tool, hash=part.version, definition=part.definition, by=by)


def _approver(part: _Part, book: Book, trust: Trust, scan: Scan) -> str | None:
    if book.held:
        return None
    if not book.known and book.released_by is not None:
        return book.released_by
    if trust == "first_use" and not book.known:
        return FIRST_USE
    if trust == "scan":
        # Words can be judged by their sound. What a tool takes, gives and may do is for a person to judge.
        pin = part.pin
        only_words = pin is None or pin.hash is None or is_rewording(diff(pin.definition, part.definition))
        if only_words and is_clean(scan(part.definition)):
            return SCAN
    return None


def sort_out(live: Listing, book: Book, scan: Scan, hash_of: HashOf) -> Sorted:
    """What may be used of a list, and what waits for a person."""
    tools: dict[str, Tool] = {}
    waiting: dict[str, Waiting] = {}
    instructions = ""
    for part in _parts(live, book, hash_of):
        if not part.approved:
            waiting[part.tool] = _waiting(live.server, part, scan)
        elif part.tool == INSTRUCTIONS:
            instructions = live.instructions
        else:
            assert part.pin is not None
            tools[part.tool] = _as_approved(live.tools[part.tool], part.pin)
    listing = msgspec.structs.replace(live, tools=tools, instructions=instructions)
    return Sorted(listing=listing, waiting=MappingProxyType(waiting))


def _waiting(server: str, part: _Part, scan: Scan) -> Waiting:
    approved = part.pin.definition if part.pin is not None and part.pin.hash is not None else None
    state: State = "pending" if approved is None else "changed"
    if part.pin is not None and part.pin.refused == part.version:
        state = "rejected"
    return Waiting(
        server=server,
        tool=part.tool,
        state=state,
        hash=part.version,
        live=part.definition,
        approved=approved,
        findings=scan(part.definition),
    )


def _as_approved(live: Tool, pin: Pin) -> Tool:
    if live.definition == pin.definition:
        return live
    try:
        return parse_tool(live.server, pin.definition)
    except BadDefinition:  # the same definition in other words, and of an older mcpproxy's taste
        return live


def version_of_all(waiting: Iterable[Waiting]) -> str:
    """Names everything that waits, as it was shown, but for what a person refused: an approval of all repeats it."""
    shown = sorted([one.server, one.tool, one.hash] for one in waiting if one.state != "rejected")
    return sha256(json.dumps(shown).encode()).hexdigest()


def parts_of(listing: Listing) -> Iterator[tuple[str, bytes]]:
    """Everything in a list that can be approved, by name: its tools, and the instructions where there are some."""
    for tool in listing.tools.values():
        yield tool.name, tool.definition
    if listing.instructions:
        yield INSTRUCTIONS, instructions_definition(listing.instructions)


def _parts(listing: Listing, book: Book, hash_of: HashOf) -> Iterator[_Part]:
    for tool, definition in parts_of(listing):
        yield _Part(tool, definition, hash_of(definition), book.pins.get(tool))
