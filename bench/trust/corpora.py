"""Which definitions is the scan measured on? The shared corpora, one half of each to tune on, the other to check."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mcpproxy.catalog.scan.neighbours import Neighbours
from mcpproxy.catalog.scan.subject import Context
from mcpproxy.catalog.tool import BadDefinition, Tool, parse_tool

SHARED = Path("/work/shared/data")
SECURITY = SHARED / "security"
WILD = SHARED / "retrieval" / "livemcp_10k" / "tools.jsonl"

Half = Literal["tune", "check"]


class Case(NamedTuple):
    """One definition with the answer that is wanted."""

    id: str
    source: str
    kind: str
    malicious: bool
    half: Half
    definition: bytes
    context: Context


def cases() -> Iterator[Case]:
    """Every labelled definition; a benign one stands among the tools of all other benign servers."""
    rows = [(path.stem, row) for path in sorted(SECURITY.glob("*.jsonl")) for row in _rows(path) if _is_labelled(row)]
    neighbours, own = _neighbourhood(row for source, row in rows if source.startswith("benign"))
    for source, row in rows:
        server = row.get("server") or "server under test"
        context = Context(server, own[server], neighbours) if source.startswith("benign") else _peers(server, row)
        yield Case(
            id=row["id"],
            source=source,
            kind=row["kind"],
            malicious=row["label"] == "malicious",
            half=_half(server if source.startswith("benign") else row["id"]),
            definition=_encoded(row["tool"]),
            context=context,
        )


def wild() -> Iterator[Case]:
    """Ten thousand definitions as found in the wild: nobody labelled them, nearly all are honest."""
    rows = [row | {"tool": _wild_tool(row)} for row in _rows(WILD)]
    neighbours, own = _neighbourhood(iter(rows))
    for row in rows:
        server = row["server"]
        context = Context(server, own[server], neighbours)
        yield Case(row["id"], "wild_10k", "unlabelled", False, _half(server), _encoded(row["tool"]), context)


def rug_pulls() -> Iterator[dict[str, Any]]:
    """Pairs of one tool's definition before and after a change, with what should become of it."""
    for name in ("rug_pull_synthetic", "rug_pull_pairs"):
        yield from _rows(SECURITY / f"{name}.jsonl")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _is_labelled(row: dict[str, Any]) -> bool:
    return "tool" in row and "text" not in row


def _half(key: str) -> Half:
    return "tune" if hashlib.sha256(key.encode()).digest()[0] % 2 == 0 else "check"


def _encoded(tool: dict[str, Any]) -> bytes:
    return json.dumps(tool, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _wild_tool(row: dict[str, Any]) -> dict[str, Any]:
    return {"name": row["name"], "description": row["description"], "inputSchema": row["input_schema"]}


def _neighbourhood(rows: Iterator[dict[str, Any]]) -> tuple[Neighbours, dict[str, frozenset[str]]]:
    tools: dict[str, list[Tool]] = defaultdict(list)
    for row in rows:
        tools[row["server"]].extend(_tools(row["server"], row["tool"]))
    neighbours = Neighbours()
    for server, listed in tools.items():
        neighbours.put(server, listed)
    own = {row: frozenset(tool.name for tool in listed) for row, listed in tools.items()}
    return neighbours, defaultdict(frozenset, own)


def _peers(server: str, row: dict[str, Any]) -> Context:
    neighbours = Neighbours()
    own = {row["tool"]["name"]}
    for peer in row.get("peers") or ():
        if peer["server"] == server:
            own.add(peer["tool"]["name"])
        else:
            neighbours.put(peer["server"], _tools(peer["server"], peer["tool"]))
    return Context(server, frozenset(own), neighbours)


def _tools(server: str, tool: dict[str, Any]) -> list[Tool]:
    try:
        return [parse_tool(server, _encoded(tool))]
    except BadDefinition:
        return []
