"""What does discovery cost an agent? Tokens of all schemas in context against a tool list and searches through us."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any

from bench.search.ours import Ours
from bench.search.sets import SHARED, load_set

from mcpproxy.agent.descriptions import built_in_tools, usage_instructions
from mcpproxy.catalog.search.budget import Candidate, Detail, build_answer
from mcpproxy.catalog.search.tokens import estimate
from mcpproxy.config.models import Config

BUDGET, LIMIT, ECHO = 4000, 15, 1000


def counter() -> tuple[str, Callable[[str], int]]:
    """The true encoder where one is installed with its vocabulary, else our estimate."""
    try:
        from bpe_openai import get_encoding  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return "counted by our estimate", estimate
    encoding = get_encoding("o200k_base")
    return "counted with o200k_base", lambda text: len(encoding.encode(text))


def compact_json(value: object) -> str:
    """JSON as it goes over the wire."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def print_tokens() -> None:
    """Print the figures for the LiveMCPBench catalogue."""
    how, count = counter()
    found = load_set(SHARED / "livemcp_task")
    queries = [*found.queries, *load_set(SHARED / "livemcp_agent").queries]
    documents = {document.id: document for document in found.documents}
    everything = sum(
        count(compact_json({"name": d.id, "description": d.description, "inputSchema": d.input_schema}))
        for d in documents.values()
    )
    ours = Ours(list(documents.values()))
    listed = count(compact_json(built_in_tools(Config(), {document.server for document in documents.values()})))
    print(f"\ntokens, {how}: {len(documents)} tools, {len(queries)} queries, budget {BUDGET}, limit {LIMIT}")
    print(f"  all schemas in context   {everything:>8}")
    print(f"  our tool list            {listed:>8}")
    for detail in (None, "full", "compact"):
        sizes, full, right = [], [], []
        for query in queries:
            answer = _answer(ours, documents, query["query"], detail)
            text = {
                "tools": answer.tools,
                "query": query["query"][:ECHO],
                "total": 15,
                "usage_instructions": usage_instructions(),
            }
            sizes.append(count(compact_json(text)))
            full.append(answer.full)
            with_schema = {entry["name"] for entry in answer.tools if "inputSchema" in entry}
            needed = [set(group) for group in query["groups"]]
            right.append(sum(bool(group & with_schema) for group in needed) / len(needed))
        median = statistics.median(sizes)
        print(
            f"  answer, detail {detail or 'absent':<9} median {median:>6.0f}  max {max(sizes):>6}  "
            f"full schemas {statistics.mean(full):>4.1f}  needs met with schema {statistics.mean(right):.3f}  "
            f"cheaper than all schemas up to {int((everything - listed) / median)} searches"
        )


def _answer(ours: Ours, documents: dict[str, Any], query: str, detail: Detail | None) -> Any:
    hits = ours.index.search(query, LIMIT).best
    candidates = [Candidate(documents[hit.id], hit.score, {}, "call_tool_write") for hit in hits]
    return build_answer(candidates, max_tokens=BUDGET, detail=detail, echo=query[:ECHO])
