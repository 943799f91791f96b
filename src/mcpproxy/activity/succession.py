"""Who wrote before, and how did it end? Chains are begun, taken up and closed here, inside a transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from msgspec import structs
from msgspec.json import decode

from mcpproxy.activity.chain import GENESIS, Signer
from mcpproxy.activity.lease import Lease
from mcpproxy.activity.ledger import Ledger
from mcpproxy.activity.record import Linked, new_id, now, to_micros

log = logging.getLogger(__name__)

INTERRUPTED: Final = "The process ended before the call was answered; the upstream may have executed it."


def begin_chain(ledger: Ledger, lease: Lease, signer: Signer) -> str:
    """A new writer, whose start names the start before it: a run that is missing as a whole is missed too."""
    writer = new_id()
    lease.take(ledger.connection, writer)
    last = ledger.statement("kind = 'start' ORDER BY signed_at DESC LIMIT 1")
    signed_at = max(to_micros(now()), last.signed_at + 1 if last else 0)
    previous = sha256(last.message()).digest() if last else GENESIS
    ledger.state(signer.sign("start", writer, 0, previous, signed_at))
    return writer


def is_still_ours(ledger: Ledger, lease: Lease, writer: str) -> bool:
    """Whether the chain can go on after its connection was lost.

    Others may have taken its writer for dead meanwhile, or the database may be another one now.
    """
    begun = ledger.statement("kind = 'start' AND writer = ?", writer)
    ended = ledger.statement("kind = 'end' AND writer = ?", writer)
    return begun is not None and ended is None and lease.retake(ledger.connection, writer)


def dead_writers(ledger: Ledger, lease: Lease, living: str) -> Iterator[str]:
    """The writers whose chains are not closed although nobody writes them any more."""
    rows = ledger.execute(
        "SELECT writer FROM activity_checkpoints GROUP BY writer "
        "HAVING MAX(CASE WHEN kind = 'end' THEN 1 ELSE 0 END) = 0 AND writer <> ?",
        (living,),
    ).fetchall()
    return (writer for (writer,) in rows if lease.is_free(ledger.connection, writer))


def end_chain(ledger: Ledger, lease: Lease, signer: Signer, writer: str) -> None:
    """Vouch for the chain of a dead writer as it was found, unless it was found shorter than its heads say."""
    tail = ledger.tail(writer)
    heads = [ledger.statement("kind = 'head' AND writer = ?", writer), *lease.left_behind()]
    if all(tail.position >= head.position for head in heads if head is not None and head.writer == writer):
        ledger.state(signer.sign("end", writer, tail.position, tail.hash, to_micros(now())))
        ledger.withdraw(writer, "head")
        lease.forget(writer)


def complain_of_losses(ledger: Ledger, lease: Lease) -> None:
    """Say which records were on record and are not in this database; a note that is met has done its work."""
    for note in lease.left_behind():
        found = ledger.tail(note.writer).position
        if found >= note.position:
            lease.forget(note.writer)
            continue
        log.error(
            "records are missing: writer %s had %d, and the database has %d of them. Was the file with -wal at the "
            "end of its name lost, or an older copy put back? `mcpproxy doctor` says what to do.",
            note.writer,
            note.position,
            found,
        )


def take_open_calls(ledger: Ledger, of: str, writer: str, first: int) -> list[Linked]:
    """What a writer left open, taken out of the table as records for another's chain."""
    rows = ledger.execute("SELECT id, record FROM activity_open_calls WHERE writer = ? ORDER BY id", (of,)).fetchall()
    ledger.close_calls([id_ for id_, _ in rows])
    return [
        structs.replace(
            decode(record, type=Linked),
            status="interrupted",
            error_message=INTERRUPTED,
            writer=writer,
            position=first + n,
        )
        for n, (_, record) in enumerate(rows)
    ]
