"""What does a tool's schema allow? Compiled once, offline and under limits; what breaks one is not compiled."""

from __future__ import annotations

import hashlib
from typing import Any

import jsonschema_rs
import msgspec

from mcpproxy.outputs.cost import TooCostlyError, worst_case
from mcpproxy.outputs.engine import DEFAULT_DIALECT, dialect, validator
from mcpproxy.outputs.explain import explain
from mcpproxy.outputs.findings import Findings, one
from mcpproxy.outputs.guards import too_deep
from mcpproxy.outputs.payload import UndecodableError, decode
from mcpproxy.outputs.references import Document, UnresolvedError
from mcpproxy.outputs.wording import shorten

MAX_BYTES = 65_536
MAX_DEPTH = 32
MAX_NODES = 2_000


class NotCompiled(msgspec.Struct, frozen=True):
    """A schema that is not checked against, and why. The reason is for the operator."""

    reason: str


class CompiledSchema:
    """A schema ready to check values against."""

    __slots__ = ("_document", "_validator", "schema_hash", "source", "worst_ns_per_byte")

    def __init__(
        self, source: bytes, document: Document, validator: jsonschema_rs.Validator, worst_ns_per_byte: float
    ) -> None:
        self.source = source
        self.schema_hash = hashlib.sha256(source).hexdigest()
        self.worst_ns_per_byte = worst_ns_per_byte
        self._document = document
        self._validator = validator

    def violations(self, value: Any) -> Findings:
        """Say how a decoded value breaks the schema; falsy where it does not."""
        try:
            if self._validator.is_valid(value):
                return Findings()
        except ValueError:
            return one("a value that JSON can carry", found="something else")
        return explain(self._document, type(self._validator), value)


def canonical(schema: bytes | dict[str, Any] | bool) -> bytes:
    """Write a schema the one way in which equal schemas are equal bytes; raises `UndecodableError`."""
    value = decode(schema) if isinstance(schema, bytes) else schema
    try:
        return msgspec.json.encode(value, order="sorted")
    except (RecursionError, TypeError, ValueError) as error:
        raise UndecodableError("a schema that can be written as JSON") from error


def compile_schema(schema: bytes | dict[str, Any] | bool) -> CompiledSchema | NotCompiled:
    """Compile a schema, or say why not. Fetches nothing, never raises."""
    try:
        return _compile(schema)
    except UndecodableError as error:
        return NotCompiled(f"not JSON: expected {error}")
    except UnresolvedError as error:
        return NotCompiled(f"the reference {shorten(str(error))} leads outside the schema; nothing is fetched")
    except TooCostlyError as error:
        return NotCompiled(f"too costly to check: {error}")
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return NotCompiled(f"not a valid JSON Schema: {shorten(getattr(error, 'message', str(error)), 200)}")


def _compile(schema: bytes | dict[str, Any] | bool) -> CompiledSchema | NotCompiled:
    if isinstance(schema, bytes) and (refusal := _over_limit(schema)):
        return refusal
    source = canonical(schema)
    if refusal := _over_limit(source):
        return refusal
    root = decode(source)
    if not isinstance(root, dict | bool):
        return NotCompiled("a schema is an object, true or false")
    if (nodes := _count(root)) > MAX_NODES:
        return NotCompiled(f"it has {nodes:,} nodes; schemas of up to {MAX_NODES:,} are checked")
    named = str(root.get("$schema", DEFAULT_DIALECT)) if isinstance(root, dict) else DEFAULT_DIALECT
    document = Document(root, id_keyword="id" if dialect(named) is jsonschema_rs.Draft4Validator else "$id")
    for address in sorted({named, *document.dialects}):
        if dialect(address) is None:
            return NotCompiled(f"its dialect {shorten(address)} is not known")
    worst = worst_case(document)
    of_dialect = dialect(named) or jsonschema_rs.Draft202012Validator
    return CompiledSchema(source, document, validator(of_dialect, root), worst)


def _over_limit(schema: bytes) -> NotCompiled | None:
    if len(schema) > MAX_BYTES:
        return NotCompiled(f"it is {len(schema):,} bytes long; schemas of up to {MAX_BYTES:,} are checked")
    if too_deep(schema, MAX_DEPTH):
        return NotCompiled(f"it nests deeper than {MAX_DEPTH} levels")
    return None


def _count(root: Any) -> int:
    """Count every value in the schema."""
    count = 0
    stack = [root]
    while stack:
        node = stack.pop()
        count += 1
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return count
