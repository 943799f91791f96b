"""What does the writer have to do? Jobs, each for one caller, and which of them may go together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpproxy.activity.ledger import MOST_ROWS_PER_STATEMENT
from mcpproxy.activity.record import Record

if TYPE_CHECKING:
    from mcpproxy.activity.writer import Writer


class Job(Struct, eq=False):
    """What one caller waits for: all of it is committed, or nothing."""

    records: tuple[Record, ...] = ()
    opens: Record | None = None
    closes: str | None = None
    task: Callable[[Writer], Any] | None = None
    """Housekeeping, in a transaction of its own."""
    last: bool = False
    result: Any = None
    future: Any = None


def records_alone(batch: list[Job]) -> list[Record]:
    """The records of jobs that are nothing but records, where one statement can take them all; otherwise none."""
    records: list[Record] = []
    for job in batch:
        if job.opens is not None or job.closes is not None or job.task is not None or job.last:
            return []
        records += job.records
    return records if len(records) <= MOST_ROWS_PER_STATEMENT else []


def apart(batch: list[Job]) -> Iterator[list[Job]]:
    """Runs of jobs that may share a transaction; housekeeping and the last job have one of their own."""
    together: list[Job] = []
    for job in batch:
        if job.task is None and not job.last:
            together.append(job)
            continue
        if together:
            yield together
            together = []
        yield [job]
    if together:
        yield together
