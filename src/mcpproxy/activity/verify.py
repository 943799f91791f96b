"""Was anything altered? Each record is held against its hash and its predecessor, each chain against its signatures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field
from sqlalchemy import Connection, Row, or_, select

from mcpproxy.activity.chain import GENESIS, Statement, hash_of, public_key_in
from mcpproxy.activity.lease import notes_in
from mcpproxy.activity.prepare import derived
from mcpproxy.activity.record import Stored
from mcpproxy.activity.store import digested, select_records, stored
from mcpproxy.activity.tables import activity, activity_checkpoints, activity_index
from mcpproxy.storage.engine import Storage
from mcpproxy.storage.errors import StorageDamaged

ProblemKind = Literal[
    "edited",
    "replaced",
    "missing",
    "inserted",
    "reordered",
    "cut",
    "unknown_writer",
    "missing_run",
    "signature",
    "index",
    "unreadable",
]

_ROWS_AT_A_TIME: Final = 1000
_MOST_PROBLEMS: Final = 100


class Problem(Struct, frozen=True, kw_only=True):
    """One thing that is not as it was written."""

    kind: ProblemKind
    writer: str
    position: int
    id: str | None = None
    """The record's id, where there still is a record."""
    text: str


class Anchor(Struct, frozen=True, kw_only=True):
    """How far a chain went, as someone kept it outside of this database."""

    writer: str
    position: int
    hash: bytes


class ChainReport(Struct, frozen=True, kw_only=True):
    """What was found of one writer's chain."""

    writer: str
    records: int
    first: int
    """The position of the oldest record that is left; 0 where none is."""
    last: int
    pruned: int
    """Up to where retention removed it, by its signed word."""
    anchored: int
    """Up to where a signature vouches for it."""
    ended: bool
    statements: list[dict[str, Any]]
    """Its signed words. The last `head` or `end`, kept elsewhere, proves a cut tail even against the key's owner."""


class Report(Struct, frozen=True, kw_only=True):
    """The outcome. `problems` begins with the first bad record."""

    ok: bool
    records: int
    unanchored: int
    """Records that no signature covers yet: the last ones of running processes."""
    chains: list[ChainReport]
    problems: list[Problem]


class _Chain(Struct):
    writer: str
    position: int = 0
    hash: bytes = GENESIS
    last_id: str | None = None
    records: int = 0
    first: int = 0
    pruned: int = 0
    anchored: int = 0
    end: int | None = None
    seq: int = 0
    statements: list[Statement] = field(default_factory=list)
    anchors: dict[int, list[bytes]] = field(default_factory=dict)
    """What the record at a position must have as its hash."""
    late: set[int] = field(default_factory=set)
    """Positions that were reported as out of order and may still come."""


def verify_in(data_dir: Path, storage: Storage) -> Report:
    """Check everything, with the key of a data directory and the notes that its writers made outside the database."""
    own_key = public_key_in(data_dir)
    notes = [note for note in notes_in(data_dir) if note.key == own_key]
    anchors = [Anchor(writer=note.writer, position=note.position, hash=note.hash) for note in notes]
    return verify(storage, own_key, anchors=anchors)


def verify(
    storage: Storage,
    own_key: bytes | None = None,
    *,
    trusted_keys: Collection[bytes] = (),
    anchors: Iterable[Anchor] = (),
) -> Report:
    """Check everything. Reads the whole log: use it in a thread.

    With SQLite only the data directory's own key and the trusted ones may have signed. Replicas on PostgreSQL have a
    key each, so there any key may, unless trusted ones are given.
    """
    trusted = set(trusted_keys)
    if own_key is not None and (trusted or storage.dialect == "sqlite"):
        trusted.add(own_key)
    check = _Check(storage, trusted)
    check.read_statements(anchors)
    check.walk()
    return check.report()


class _Check:
    """One verification under way."""

    def __init__(self, storage: Storage, trusted: set[bytes]) -> None:
        self._storage = storage
        self._trusted = trusted
        self._chains: dict[str, _Chain] = {}
        self._problems: list[Problem] = []
        self._index_damage: StorageDamaged | None = None

    def read_statements(self, anchors: Iterable[Anchor]) -> None:
        """Take up the signed words, and what the caller kept elsewhere."""
        with self._storage.read() as connection:
            rows = connection.execute(select(activity_checkpoints).order_by(activity_checkpoints.c.writer)).mappings()
            statements = [Statement(**row) for row in rows]
        good = [statement for statement in statements if self._is_trusted(statement)]
        self._check_starts([statement for statement in good if statement.kind == "start"])
        for statement in good:
            if statement.kind == "start":
                self._chains[statement.writer] = _Chain(statement.writer)
        for statement in good:
            chain = self._chains.get(statement.writer)
            if chain is not None:
                _take_up(chain, statement)
        for anchor in anchors:
            chain = self._chains.setdefault(anchor.writer, _Chain(anchor.writer))
            chain.anchors.setdefault(anchor.position, []).append(anchor.hash)
        for chain in self._chains.values():
            self._check_anchor(chain)

    def walk(self) -> None:
        """Look at every row, in the order of commits."""
        last, at_a_time = 0, _ROWS_AT_A_TIME
        while True:
            rows: Sequence[Row[Any]] | None = None
            try:
                with self._storage.read() as connection:
                    rows = _page(connection, last, at_a_time)
                    for row in rows:
                        self._check_row(connection, row)
            except StorageDamaged as damage:
                if rows is not None:
                    raise
                if at_a_time == 1:
                    self._give_up(damage)
                    return
                at_a_time = 1  # up to the very record at which it ends
                continue
            if not rows:
                break
            self._check_index(last, rows[-1].seq)
            last = rows[-1].seq
        if self._index_damage is not None:
            text = f"The index by which records are found cannot be read. {self._index_damage.what}"
            self._add("unreadable", "", 0, text)

    def _give_up(self, damage: StorageDamaged) -> None:
        """What comes after a record that cannot be read is not known, so no more is said about it."""
        last = max(self._chains.values(), key=lambda chain: chain.seq, default=_Chain(""))
        after = f"record {last.last_id}" if last.last_id else "the beginning"
        text = f"The first record after {after} cannot be read, and none after it was checked. {damage.what}"
        self._add("unreadable", last.writer, last.position + 1, text)
        for chain in self._chains.values():
            chain.anchors.clear()

    def report(self) -> Report:
        """Sum up."""
        for chain in self._chains.values():
            self._check_tail(chain)
        chains = [
            ChainReport(
                writer=chain.writer,
                records=chain.records,
                first=chain.first,
                last=chain.position,
                pruned=chain.pruned,
                anchored=chain.anchored,
                ended=chain.end is not None,
                statements=[statement.shown() for statement in chain.statements],
            )
            for chain in self._chains.values()
        ]
        return Report(
            ok=not self._problems,
            records=sum(chain.records for chain in chains),
            unanchored=sum(chain.last - chain.anchored for chain in chains),
            chains=chains,
            problems=self._problems,
        )

    # Statements

    def _is_trusted(self, statement: Statement) -> bool:
        what = f"The signed {statement.kind} of writer {statement.writer}"
        if not statement.is_signed():
            self._add("signature", statement.writer, statement.position, f"{what} has a wrong signature.")
            return False
        if self._trusted and statement.key not in self._trusted:
            key = statement.key.hex()
            self._add("signature", statement.writer, statement.position, f"{what} is signed by an unknown key, {key}.")
            return False
        return True

    def _check_starts(self, starts: list[Statement]) -> None:
        """Each start names the one before it, so that a run cannot go missing as a whole."""
        known = {sha256(start.message()).digest() for start in starts}
        firsts = 0
        for start in starts:
            firsts += start.hash == GENESIS
            if (start.hash == GENESIS and firsts > 1) or (start.hash != GENESIS and start.hash not in known):
                self._add(
                    "missing_run", start.writer, 0, f"The run before writer {start.writer} is missing as a whole."
                )

    # Rows

    def _check_row(self, connection: Connection, row: Row[Any]) -> None:
        try:
            record = stored(row)
        except (TypeError, ValueError, AttributeError, OverflowError):
            self._add("edited", row.writer, row.position, f"Record {row.id} was edited: it is not readable.", row.id)
            return
        chain = self._chains.get(record.writer)
        if chain is None:
            chain = self._chains[record.writer] = _Chain(record.writer, position=record.position - 1)
            chain.hash = bytes.fromhex(record.prev_hash)
            text = f"Record {record.id} is of writer {record.writer}, which has no signed start."
            self._add("unknown_writer", record.writer, record.position, text, record.id)
        chain.records += 1
        if record.position in chain.late:
            chain.late.discard(record.position)
            return
        if record.position <= chain.position:
            text = f"Record {record.id} was inserted: position {record.position} was taken before it."
            self._add("inserted", record.writer, record.position, text, record.id)
            return
        self._check_place(connection, chain, record, row.seq)
        if not _is_intact(record, row):
            self._add("edited", record.writer, record.position, f"Record {record.id} was edited.", record.id)
        chain.position, chain.hash, chain.last_id = record.position, bytes.fromhex(record.hash), record.id
        chain.seq = row.seq
        chain.first = chain.first or record.position
        self._check_anchor(chain)

    def _check_place(self, connection: Connection, chain: _Chain, record: Stored, seq: int) -> None:
        """Whether the record follows the last one of its chain."""
        if record.position > chain.position + 1:
            self._catch_up(connection, chain, record.position)
        if record.position > chain.position + 1:
            self._add_gap(connection, chain, record, seq)
        elif record.prev_hash != chain.hash.hex():
            text = f"Record {chain.last_id} was replaced: it is not the one that record {record.id} follows."
            self._add("replaced", chain.writer, chain.position, text, chain.last_id)
        if chain.end is not None and record.position > chain.end:
            text = f"Record {record.id} was added after its writer had ended at position {chain.end}."
            self._add("inserted", chain.writer, record.position, text, record.id)

    def _add_gap(self, connection: Connection, chain: _Chain, record: Stored, seq: int) -> None:
        first = chain.position + 1
        later = select(activity.c.id).where(
            activity.c.seq > seq, activity.c.writer == chain.writer, activity.c.position == first
        )
        moved = connection.execute(later.limit(1)).scalar()
        if moved is not None:
            chain.late.update(range(first, record.position))
            text = f"Record {moved} at position {first} is out of order: record {record.id} stands before it."
            self._add("reordered", chain.writer, first, text, moved)
            return
        missing = (
            f"Position {first} is"
            if record.position == first + 1
            else f"Positions {first} to {record.position - 1} are"
        )
        text = f"{missing} missing from the chain of writer {chain.writer}, before record {record.id}."
        self._add("missing", chain.writer, first, text)

    def _catch_up(self, connection: Connection, chain: _Chain, before: int) -> None:
        """Retention may have gone on since the beginning."""
        row = (
            connection.execute(
                select(activity_checkpoints).where(
                    activity_checkpoints.c.writer == chain.writer, activity_checkpoints.c.kind == "pruned"
                )
            )
            .mappings()
            .first()
        )
        statement = Statement(**row) if row is not None else None
        if statement is not None and chain.position < statement.position < before and self._is_trusted(statement):
            _take_up(chain, statement)

    def _check_index(self, after: int, upto: int) -> None:
        """What filters look at must say the same as the records."""
        try:
            with self._storage.read() as connection:
                self._compare_index(connection, after, upto)
        except StorageDamaged as damage:
            self._index_damage = damage  # or the record behind these is what cannot be read, as will be seen

    def _compare_index(self, connection: Connection, after: int, upto: int) -> None:
        names = [column.name for column in activity_index.columns if column.name != "seq"]
        differs = or_(
            activity_index.c.seq.is_(None),
            *(activity_index.c[name].is_distinct_from(activity.c[name]) for name in names),
        )
        both = activity.outerjoin(activity_index, activity_index.c.seq == activity.c.seq)
        rows = select(activity.c.writer, activity.c.position, activity.c.id).select_from(both)
        indexed = (activity.c.seq > after, activity.c.seq <= min(upto, digested(connection)))
        for writer, position, id_ in connection.execute(rows.where(*indexed, differs).limit(_MOST_PROBLEMS)):
            self._add("index", writer, position, f"Record {id_} is hidden from filters: its index was changed.", id_)

    # Ends

    def _check_anchor(self, chain: _Chain) -> None:
        for expected in chain.anchors.pop(chain.position, ()):
            if expected == chain.hash:
                chain.anchored = chain.position
            else:
                text = f"Record {chain.last_id} was replaced: another one was signed at position {chain.position}."
                self._add("replaced", chain.writer, chain.position, text, chain.last_id)

    def _check_tail(self, chain: _Chain) -> None:
        beyond = max((position for position in chain.anchors if position > chain.position), default=0)
        if beyond:
            with self._storage.read() as connection:
                self._catch_up(connection, chain, beyond + 1)
        if beyond > chain.position:
            text = (
                f"The chain of writer {chain.writer} was cut: it went to position {beyond}, "
                f"and ends at {chain.position}" + (f" with record {chain.last_id}." if chain.last_id else ".")
            )
            self._add("cut", chain.writer, chain.position + 1, text)

    def _add(self, kind: ProblemKind, writer: str, position: int, text: str, id_: str | None = None) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(Problem(kind=kind, writer=writer, position=position, id=id_, text=text))


def _page(connection: Connection, after: int, most: int) -> Sequence[Row[Any]]:
    columns = select_records().add_columns(activity.c.intent_type, activity.c.search)
    return connection.execute(columns.where(activity.c.seq > after).order_by(activity.c.seq).limit(most)).all()


def _is_intact(record: Stored, row: Row[Any]) -> bool:
    try:
        return hash_of(record).hex() == record.hash and derived(record) == (row.intent_type, row.search)
    except (ValueError, TypeError):
        return False


def _take_up(chain: _Chain, statement: Statement) -> None:
    chain.statements = [*(each for each in chain.statements if each.kind != statement.kind), statement]
    if statement.kind == "pruned":
        chain.position = chain.pruned = chain.anchored = statement.position
        chain.hash = statement.hash
    elif statement.kind in {"head", "end"}:
        chain.anchors.setdefault(statement.position, []).append(statement.hash)
        if statement.kind == "end":
            chain.end = statement.position
