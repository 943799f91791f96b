"""A log to measure on: as many records as asked for, written by the journal's own code, over thirty days."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Raw

from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record, Status, now
from mcpproxy.storage.engine import Storage

BATCH = 5000
DAYS = 30
SERVERS = 20
TOOLS = 25
SESSIONS = 4000
VERBS = ("create", "list", "delete", "get", "search", "update", "merge", "close")
NOUNS = ("issue", "repo", "file", "user", "branch", "ticket", "page", "row")
REASONS = ("Creating a bug report", "Looking for the owner", "User confirmed the cleanup", "Reading before editing")
STATUSES: tuple[Status, ...] = ("success", "error", "blocked", "rejected", "interrupted")
ERRORS = ("Gateway timeout after 120 s", "HTTP 404: not found", "Permission denied by upstream")


async def fill(storage: Storage, data_dir: Path, records: int) -> float:
    """Write so many records; tells how long one took, in seconds."""
    journal = Journal(storage, data_dir)
    await journal.start()
    dice = random.Random(7)
    began = time.perf_counter()
    first, step = now() - timedelta(days=DAYS), timedelta(days=DAYS) / records
    for done in range(0, records, BATCH):
        batch = [_record(dice, first + step * n, n) for n in range(done, min(done + BATCH, records))]
        await journal.write(*batch)
        await journal.run(lambda writer: writer.ledger.digest(2 * BATCH))
    took = time.perf_counter() - began
    await journal.stop()
    return took / records


def _record(dice: random.Random, moment: datetime, number: int) -> Record:
    server = min(int(dice.expovariate(0.25)), SERVERS - 1)
    tool = min(int(dice.expovariate(0.2)), TOOLS - 1)
    operation = dice.choices(("read", "write", "destructive"), (80, 18, 2))[0]
    status: Status = dice.choices(STATUSES, (940, 45, 10, 4, 1))[0]
    return Record(
        type=dice.choices(("tool_call", "internal_tool_call", "policy_decision"), (80, 17, 3))[0],
        source="mcp",
        server_name=f"server-{server}",
        tool_name=f"{VERBS[tool % 8]}_{NOUNS[tool % 7]}_{tool}",
        status=status,
        error_message=None if status == "success" else dice.choice(ERRORS),
        arguments=Raw(b'{"owner":"acme","repo":"widgets","number":%d}' % number),
        response=Raw(b'{"content":[{"type":"text","text":"%s"}]}' % (b"x" * 200)),
        duration_ms=round(dice.expovariate(0.02), 3),
        timestamp=moment,
        request_id=f"req-{number}",
        session_id=f"session-{dice.randrange(SESSIONS)}",
        client_name="claude-code",
        metadata={
            "intent": {"operation_type": operation, "reason": dice.choice(REASONS)},
            "tool_variant": f"call_tool_{operation}",
        },
    )
