"""May this result pass? The order of all checks on one result, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs.findings import Findings, Guard, one
from mcpproxy.outputs.guards import too_deep
from mcpproxy.outputs.payload import UndecodableError, decode, repeated_key
from mcpproxy.outputs.schema import CompiledSchema, NotCompiled
from mcpproxy.outputs.wording import Mask, record_key_step

# How a payload within the byte guard is looked at: payload, schema, settings.
Look = Callable[[bytes, CompiledSchema | None, OutputValidation], Findings]


class OutputVerdict(msgspec.Struct, frozen=True):
    """What becomes of a result. `for_agent` holds nothing of the payload, `for_record` may."""

    action: Literal["pass", "warn", "block"] = "pass"
    for_agent: str = ""
    for_record: str = ""
    mode: str = "off"
    guard: Guard | None = None
    schema_path: str | None = None
    schema_hash: str | None = None
    bytes: int = 0

    def details(self) -> dict[str, Any]:
        """Return what the record keeps under `output_validation`; what does not apply is left out."""
        details = {
            "mode": self.mode,
            "violation": self.for_record,
            "guard": self.guard,
            "schema_path": self.schema_path,
            "schema_hash": self.schema_hash,
            "bytes": self.bytes,
        }
        return {key: value for key, value in details.items() if value is not None}


PASS = OutputVerdict()


def check(
    structured: bytes | None,
    is_error: bool,
    schema: CompiledSchema | NotCompiled | None,
    settings: OutputValidation,
    *,
    mask: Mask = str,
    look: Look | None = None,
) -> OutputVerdict:
    """Judge one result. Never raises; what cannot be checked within its limits is a violation."""
    if settings.mode == "off" or is_error:
        return PASS
    declared = schema if isinstance(schema, CompiledSchema) else None
    if structured is None:
        if declared is None or settings.mode == "warn" or settings.missing_structured_content == "allow":
            return PASS
        findings = one("structuredContent, which the tool's output schema declares", "none")
    elif declared is None and not settings.guard_undeclared:
        return PASS
    elif len(structured) > settings.max_bytes:
        findings = one(f"at most {settings.max_bytes:,} bytes", f"{len(structured):,} bytes", guard="max_bytes")
    else:
        findings = (look or examine)(structured, declared, settings)
    return _verdict(findings, declared, structured, settings, mask) if findings else PASS


def examine(structured: bytes, schema: CompiledSchema | None, settings: OutputValidation) -> Findings:
    """Look at a payload within the byte guard: depth, decoding, repeated keys, schema, in this order."""
    if too_deep(structured, settings.max_depth):
        return one(
            f"at most {settings.max_depth} levels of nesting",
            f"more than {settings.max_depth} levels",
            guard="max_depth",
        )
    if schema is None:
        return Findings()
    try:
        value = decode(structured)
    except UndecodableError as error:
        return one(str(error), "something that does not decode")
    if settings.mode == "strict" and (repeated := repeated_key(structured, value)):
        path, key = repeated
        where = "".join(f"[{step}]" if isinstance(step, int) else record_key_step(step) for step in path)
        return one("every key once in an object", f"a repeated key in ${where}: {key}")
    return schema.violations(value)


def block_message(tool: str, verdict: OutputVerdict) -> str:
    """Write what the agent reads in place of a blocked result; `tool` is `server:tool`."""
    return f"Output validation failed for '{tool}': {verdict.for_agent}"


def _verdict(
    findings: Findings,
    schema: CompiledSchema | None,
    structured: bytes | None,
    settings: OutputValidation,
    mask: Mask,
) -> OutputVerdict:
    return OutputVerdict(
        action="block" if settings.mode == "strict" else "warn",
        for_agent=findings.for_agent(),
        for_record=findings.for_record(mask),
        mode=settings.mode,
        guard=findings.guard,
        schema_path=findings.schema_path,
        schema_hash=schema.schema_hash if schema else None,
        bytes=len(structured or b""),
    )
