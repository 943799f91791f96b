"""How does the log leave the house? As lines of JSON that carry their hashes, or as a table for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Final, Literal

from msgspec.json import encode
from sqlalchemy import func, select

from mcpproxy.activity.filters import BadFilter, Filter
from mcpproxy.activity.record import Stored, decoded
from mcpproxy.activity.store import in_ledger, select_records, stored
from mcpproxy.activity.tables import activity
from mcpproxy.storage.engine import Storage

Format = Literal["jsonl", "csv"]
FORMATS: Final = ("jsonl", "csv")

_ROWS_AT_A_TIME: Final = 500
_FIELDS: Final = Stored.__struct_fields__
_CHAIN_FIELDS: Final = ("writer", "position", "prev_hash", "hash")
_INTENT_COLUMNS: Final = ("intent_operation_type", "intent_data_sensitivity", "intent_reason", "tool_variant")
CSV_COLUMNS: Final = (
    *(field for field in _FIELDS if field not in _CHAIN_FIELDS),
    *_INTENT_COLUMNS,
    *_CHAIN_FIELDS,
)
# A spreadsheet takes a cell that begins like this for a formula, and runs it.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def export(storage: Storage, form: str = "jsonl", asked: Filter | None = None) -> Iterator[bytes]:
    """The records that a filter lets through, oldest first, in pieces. It reads the database: use it in a thread."""
    if form not in FORMATS:
        raise BadFilter("format", form, FORMATS)
    chunks = _chunks(storage, asked or Filter())
    return _csv(chunks) if form == "csv" else _jsonl(chunks)


def _chunks(storage: Storage, asked: Filter) -> Iterator[list[Stored]]:
    """Up to the record that is the last at the beginning; each chunk is a short look of its own."""
    with storage.read() as connection:
        end = connection.execute(select(func.max(activity.c.seq))).scalar() or 0
    last = 0
    while last < end:
        page = select_records().where(activity.c.seq > last, activity.c.seq <= end, *in_ledger(asked))
        with storage.read() as connection:
            rows = connection.execute(page.order_by(activity.c.seq).limit(_ROWS_AT_A_TIME)).all()
        if not rows:
            return
        last = rows[-1].seq
        yield [stored(row) for row in rows]


def _jsonl(chunks: Iterator[list[Stored]]) -> Iterator[bytes]:
    for chunk in chunks:
        yield b"".join(encode(record) + b"\n" for record in chunk)


def _csv(chunks: Iterator[list[Stored]]) -> Iterator[bytes]:
    yield _table([CSV_COLUMNS])
    for chunk in chunks:
        yield _table([_cells(record) for record in chunk])


def _table(rows: list[tuple[str, ...]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode("utf-8", "replace")


def _cells(record: Stored) -> tuple[str, ...]:
    metadata = decoded(record.metadata)
    intent = metadata.get("intent")
    values: dict[str, object] = {name: getattr(record, name) for name in _FIELDS}
    values["timestamp"] = encode(record.timestamp).decode().strip('"')
    for name in ("arguments", "response", "metadata"):
        text = bytes(values[name]).decode()  # type: ignore[call-overload]
        values[name] = None if text == "null" else text
    if isinstance(intent, dict):
        values |= {f"intent_{name}": value for name, value in intent.items()}
    values["tool_variant"] = metadata.get("tool_variant")
    return tuple(_cell(values.get(name)) for name in CSV_COLUMNS)


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
