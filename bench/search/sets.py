"""What is measured on? Public evaluation sets read from a folder at run time, and the small set of our own."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpproxy.catalog.search.document import Document

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("MCPPROXY_RETRIEVAL_SETS", ROOT.parent / "shared" / "data" / "retrieval"))
GOLDEN = ROOT / "tests" / "catalog" / "search" / "golden"

Row = dict[str, Any]


@dataclass(frozen=True)
class EvaluationSet:
    """Tools, queries, and for each query the tools that answer it."""

    name: str
    tools: list[Row]
    queries: list[Row]

    @property
    def documents(self) -> list[Document]:
        """The tools as search takes them."""
        return [document_of(tool) for tool in self.tools]


def document_of(tool: Row) -> Document:
    """One row of `tools.jsonl` as search takes it."""
    hints = tool.get("annotations") or {}
    return Document(
        id=tool["id"],
        server=tool["server"],
        name=tool["name"],
        description=tool.get("description") or "",
        input_schema=tool.get("input_schema") or {},
        read_only=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
    )


def load_set(folder: Path) -> EvaluationSet:
    """Read one set."""
    return EvaluationSet(folder.name, _lines(folder / "tools.jsonl"), _lines(folder / "queries.jsonl"))


def public_sets() -> Iterator[EvaluationSet]:
    """The public sets, where the folder is there."""
    for path in sorted(SHARED.glob("*/tools.jsonl")):
        yield load_set(path.parent)


def _lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def measures(query: Row, found: Sequence[str]) -> dict[str, float]:
    """nDCG@10, recall@5 and recall@1 of one answer. A need is met by any tool of its group."""
    found = list(dict.fromkeys(found))
    groups = [set(group) for group in query.get("groups") or [[tool] for tool in query["gold"]]]
    measured = {f"recall@{k}": sum(bool(group & set(found[:k])) for group in groups) / len(groups) for k in (5, 1)}
    grades: dict[str, float] | None = query.get("grades")
    if grades:
        gains = [grades.get(tool, 0.0) for tool in found[:10]]
        ideal = sorted(grades.values(), reverse=True)[:10]
    else:
        gains, ideal = _first_gains(groups, found[:10]), [1.0] * min(len(groups), 10)
    best = _discounted(ideal)
    return {"ndcg@10": _discounted(gains) / best if best else 0.0, **measured}


def _first_gains(groups: list[set[str]], found: Sequence[str]) -> list[float]:
    left = list(groups)
    gains = []
    for tool in found:
        met = next((group for group in left if tool in group), None)
        gains.append(0.0 if met is None else 1.0)
        if met is not None:
            left.remove(met)
    return gains


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))
