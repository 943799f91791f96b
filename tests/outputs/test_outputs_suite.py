"""The official JSON-Schema-Test-Suite, through the same door as every result.

Left out: `optional/format*` (formats are notes here), and the cases that need a document from elsewhere:
those must come back as not compiled, never as passed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs.check import check
from mcpproxy.outputs.schema import CompiledSchema, compile_schema

SUITE = Path(__file__).parents[3] / "shared" / "data" / "json-schema-test-suite" / "tests"
DIALECTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
# draft, optional or required, cases judged, cases that need a document from elsewhere
EXPECTED = [
    ("draft2020-12", False, 1_250, 49),
    ("draft2020-12", True, 157, 1),
    ("draft7", False, 904, 23),
    ("draft7", True, 116, 2),
]
STRICT = OutputValidation(mode="strict", max_depth=500)

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the JSON-Schema-Test-Suite is not at {SUITE}")


def groups(draft: str, optional: bool) -> list[tuple[str, dict[str, Any]]]:
    folder = SUITE / draft / "optional" if optional else SUITE / draft
    paths = [path for path in sorted(folder.glob("*.json")) if not (optional and path.name.startswith("format"))]
    return [(path.name, group) for path in paths for group in json.loads(path.read_text(encoding="utf-8"))]


def needs_another_document(schema: Any) -> bool:
    """Say whether the group is one of those that the suite's own server would have to answer."""
    text = json.dumps(schema)
    return "localhost:1234" in text


@pytest.mark.parametrize(("draft", "optional", "judged", "elsewhere"), EXPECTED)
def test_the_official_suite_passes(draft: str, optional: bool, judged: int, elsewhere: int) -> None:
    wrong: list[str] = []
    counts = {True: 0, False: 0}
    for name, group in groups(draft, optional):
        schema = group["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": DIALECTS[draft], **schema}
        compiled = compile_schema(json.dumps(schema).encode())
        counts[isinstance(compiled, CompiledSchema)] += len(group["tests"])
        if not isinstance(compiled, CompiledSchema):
            if not needs_another_document(schema):
                wrong.append(f"{name}: {group['description']}: {compiled.reason}")
            continue
        for case in group["tests"]:
            verdict = check(json.dumps(case["data"]).encode(), False, compiled, STRICT)
            if (verdict.action == "pass") is not case["valid"]:
                wrong.append(f"{name}: {group['description']}: {case['description']}: {verdict.for_record}")
    assert wrong == []
    assert counts == {True: judged, False: elsewhere}
