"""Are the tools in order? Schemas that cannot be checked against, and tools that stand in each other's way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mcpproxy.cli.doctor.finding import Finding, note, ok, warning

if TYPE_CHECKING:
    from mcpproxy.catalog.tool import Tool
    from mcpproxy.cli.session import Session


def check_tools(session: Session) -> Iterator[Finding]:
    """Every tool that is on record."""
    from mcpproxy.cli.tools.shelf import known_tools
    from mcpproxy.storage.errors import StorageError

    try:
        tools = known_tools(session)
    except StorageError:
        return  # said already
    findings = [*_uncheckable(tools), *_shadowing(tools)]
    yield from findings
    if tools and not findings:
        yield ok("tools", f"all schemas of {len(tools):,} tools can be checked, and no names clash")


def _uncheckable(tools: list[Tool]) -> Iterator[Finding]:
    from mcpproxy.outputs.schema import NotCompiled, compile_schema

    for tool in tools:
        for what, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            compiled = compile_schema(schema) if schema is not None else None
            if isinstance(compiled, NotCompiled):
                text = f"the {what} schema of {tool.id} is not checked against: {compiled.reason}"
                yield warning("tools", text, f"Tell the author of {tool.server}.")


def _shadowing(tools: list[Tool]) -> Iterator[Finding]:
    """The same name on several servers: no clash for us, who say server:tool, but one for a hasty reader."""
    by_name: dict[str, list[Tool]] = {}
    for tool in tools:
        by_name.setdefault(tool.name.lower(), []).append(tool)
    for alike in by_name.values():
        if len(alike) > 1:
            names = ", ".join(tool.id for tool in alike)
            yield note("tools", f"these have the same name: {names}", "Leave one out with disabled_tools.")
