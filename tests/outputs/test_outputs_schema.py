"""A schema is compiled offline and under limits, or it is not compiled and says why."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpproxy.outputs.schema import MAX_BYTES, CompiledSchema, NotCompiled, canonical, compile_schema

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def compiled(schema: bytes | dict[str, Any] | bool) -> CompiledSchema:
    result = compile_schema(schema)
    assert isinstance(result, CompiledSchema), result
    return result


def reason(schema: bytes | dict[str, Any] | bool) -> str:
    result = compile_schema(schema)
    assert isinstance(result, NotCompiled)
    return result.reason


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A web server that serves a schema to whoever asks, and remembers who did."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type":"integer"}')

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "URL/a"},
        {"$ref": "URL/a#/x"},
        {"$schema": "URL/a"},
        {"$id": "URL/a", "$ref": "b"},
        {"$id": "URL/a", "properties": {"x": {"$dynamicRef": "b#c"}}},
        {"properties": {"x": {"$id": "URL/a", "$schema": "URL/b"}}},
        {"$schema": DRAFT_7, "definitions": {"a": {"$ref": "URL/a"}}, "$ref": "#/definitions/a"},
    ],
)
def test_nothing_is_ever_fetched(schema: dict[str, Any], asked: tuple[str, list[str]]) -> None:
    url, paths = asked
    raw = msgspec.json.encode(schema).replace(b"URL", url.encode())
    assert isinstance(compile_schema(raw), NotCompiled)
    assert paths == []


def test_a_file_is_not_read_through_a_reference(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type":"integer"}')
    assert "leads outside the schema" in reason({"$ref": f"file://{tmp_path}/s.json"})
    assert "leads outside the schema" in reason({"$ref": "s.json"})


def test_the_dialect_comes_from_the_schema_and_is_2020_12_where_none_is_named() -> None:
    tuple_of_integers = {"prefixItems": [{"type": "integer"}]}
    assert compiled(tuple_of_integers).violations(["x"])
    assert not compiled({"$schema": DRAFT_7, **tuple_of_integers}).violations(["x"])
    exclusive = {"$schema": "http://json-schema.org/draft-04/schema", "minimum": 1, "exclusiveMinimum": True}
    assert compiled(exclusive).violations(1)


@pytest.mark.parametrize("address", ["https://example.com/dialect", "http://json-schema.org/draft-03/schema#", ""])
def test_an_unknown_dialect_is_not_guessed(address: str) -> None:
    assert "is not known" in reason({"$schema": address, "type": "object"})
    assert "is not known" in reason({"properties": {"a": {"$id": "urn:x", "$schema": address}}})


def test_formats_are_notes() -> None:
    assert not compiled({"type": "string", "format": "email"}).violations("no address")


@pytest.mark.parametrize("schema", [True, False, b"true", b"{}"])
def test_every_kind_of_schema_compiles(schema: bytes | bool) -> None:
    assert bool(compiled(schema).violations(1)) is (schema is False)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (b'{"type":', "not JSON"),
        (b'{"const":1e400}', "not JSON"),
        (b"[]", "an object, true or false"),
        (b'"object"', "an object, true or false"),
        ({"type": "text"}, "not a valid JSON Schema"),
        ({"$ref": 5}, "not a valid JSON Schema"),
        ({"$ref": "http://[broken"}, "leads outside the schema"),
        ({"$ref": "#/nowhere"}, "leads outside the schema"),
        ({"pattern": "(?=look)ahead"}, "not a valid JSON Schema"),
        ({"pattern": r"(a)\1"}, "not a valid JSON Schema"),
        ({"pattern": "a{1,1000}{1,1000}"}, "not a valid JSON Schema"),
        ({"description": "x" * MAX_BYTES}, "bytes long"),
        (b" " * MAX_BYTES + b"{}", "bytes long"),
        (b'{"not":' * 33 + b"{}" + b"}" * 33, "deeper than 32"),
        ({"enum": list(range(2_001))}, "nodes"),
    ],
)
def test_a_schema_that_is_not_compiled_says_why(schema: bytes | dict[str, Any], text: str) -> None:
    assert text in reason(schema)


def test_a_reason_holds_no_control_characters_and_is_short() -> None:
    text = reason({"type": "\x1b[31m" + "x" * 5_000})
    assert text.isprintable()
    assert len(text) < 300


def test_a_python_schema_that_json_cannot_carry_is_not_compiled() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"not": deep}
    assert "not JSON" in reason(deep)
    assert "not JSON" in reason({"const": object()})


def test_the_hash_is_of_the_meaning_not_of_the_spelling() -> None:
    spelled = compiled(b'{ "type": "object",\n "properties": {"b": {}, "a": {}} }')
    same = compiled({"properties": {"a": {}, "b": {}}, "type": "object"})
    other = compiled({"properties": {"a": {}, "b": {}}, "type": "array"})
    assert spelled.schema_hash == same.schema_hash != other.schema_hash
    assert spelled.schema_hash == hashlib.sha256(canonical(same.source)).hexdigest()


def test_a_value_that_json_cannot_carry_is_a_violation() -> None:
    assert compiled({"type": "string"}).violations("\ud800")
    assert compiled({"type": "string"}).violations(b"bytes")
