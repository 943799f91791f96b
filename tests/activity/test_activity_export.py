"""Exports: whole, in order, checkable by others, and harmless in a spreadsheet."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest

from mcpproxy.activity.chain import public_key_in
from mcpproxy.activity.export import export
from mcpproxy.activity.filters import BadFilter, Filter
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record
from mcpproxy.activity.retention import step_remover
from mcpproxy.activity.verify import verify
from mcpproxy.storage.engine import Storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]

DOCS = Path(__file__).parents[2] / "docs" / "activity.md"


@pytest.mark.anyio
async def test_jsonl_has_every_record_once_oldest_first(running: Running, storage: Storage, call: Make) -> None:
    records = [call(f"tool_{n}") for n in range(1234)]
    async with running() as journal:
        await journal.write(*records)
        lines = b"".join(export(storage)).decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [record.id for record in records]
    assert list(json.loads(lines[0])) == [
        *Record.__struct_fields__,
        *("writer", "position", "prev_hash", "hash"),
    ]


@pytest.mark.anyio
async def test_filters_narrow_an_export(running: Running, storage: Storage, call: Make) -> None:
    async with running() as journal:
        await journal.write(call("one", reason="first"), call("two", status="error"), call("three"))
        lines = b"".join(export(storage, "jsonl", Filter(status="success", q="first"))).splitlines()
    assert [json.loads(line)["tool_name"] for line in lines] == ["one"]


@pytest.mark.anyio
async def test_payloads_leave_as_they_came(running: Running, storage: Storage, call: Make) -> None:
    arguments = b'{"z":1,"a":0.10,"big":1e400,"a":"\\ud83d"}'
    async with running() as journal:
        await journal.write(call(arguments=arguments))
        (line,) = b"".join(export(storage)).splitlines()
    assert b'"arguments":' + arguments + b',"response"' in line


@pytest.mark.anyio
async def test_csv_has_the_columns_of_the_contract_and_no_formulas(
    running: Running, storage: Storage, call: Make
) -> None:
    evil = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", 'say "hi", twice', "plain"]
    async with running() as journal:
        for text in evil:
            await journal.write(call(text, error_message=text, reason=text))
        data = b"".join(export(storage, "csv")).decode()
    rows = list(csv.DictReader(io.StringIO(data, newline="")))
    intent = ["intent_operation_type", "intent_data_sensitivity", "intent_reason", "tool_variant"]
    assert list(rows[0]) == [*Record.__struct_fields__, *intent, "writer", "position", "prev_hash", "hash"]
    for column in ("tool_name", "error_message", "intent_reason"):
        assert [row[column] for row in rows] == [f"'{text}" for text in evil[:7]] + evil[7:]
    assert rows[0]["intent_operation_type"] == "write"
    assert rows[0]["tool_variant"] == "call_tool_write"
    assert rows[0]["arguments"] == '{"title":"Bug"}'
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", rows[0]["timestamp"])


@pytest.mark.anyio
async def test_an_empty_log_exports_to_a_header_or_to_nothing(storage: Storage) -> None:
    assert b"".join(export(storage)) == b""
    assert b"".join(export(storage, "csv")).startswith(b"id,type,")


def test_an_unknown_format_is_refused(storage: Storage) -> None:
    with pytest.raises(BadFilter, match="format: 'xml' is not allowed; give one of jsonl, csv"):
        export(storage, "xml")


@pytest.mark.anyio
async def test_the_recipe_of_the_docs_checks_an_export_and_finds_each_change(
    running: Running, storage: Storage, data_dir: Path, tmp_path: Path, call: Make
) -> None:
    for run in range(2):
        async with running() as journal:
            odd = call(arguments=b'{"a":1e400,"a":"\\ud83d","b":0.10}', reason="\0é\ud83d")
            await journal.write(odd, *(call(f"tool_{n}") for n in range(20)))
            await journal.run(lambda writer: writer.ledger.digest(1000))
            if run == 1:
                await journal.run(step_remover(upto=5))
            lines = b"".join(export(storage)).splitlines(keepends=True)
    recipe = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert recipe is not None
    key = public_key_in(data_dir)
    assert key is not None
    (tmp_path / "check.py").write_text(recipe[1])
    (tmp_path / "verify.json").write_bytes(msgspec.json.encode(verify(storage, key)))

    def check(exported: list[bytes], trusted: str = key.hex()) -> str:
        (tmp_path / "activity.jsonl").write_bytes(b"".join(exported))
        command = [sys.executable, "check.py", "activity.jsonl", "verify.json", trusted]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return run.stdout + run.stderr

    assert check(lines) == "unaltered: 37 records in 2 chains\n"
    assert "was edited" in check([*lines[:3], lines[3].replace(b"Bug", b"Mug"), *lines[4:]])
    assert "does not follow position 8" in check([*lines[:3], *lines[4:]])
    assert "does not follow" in check([*lines[:3], lines[4], lines[3], *lines[5:]])
    assert "does not follow" in check([*lines[:3], lines[3], *lines[3:]])
    assert "was cut: it went to 21 and ends at 20" in check(lines[:-1])
    assert "which is not trusted" in check(lines, "00" * 32)
