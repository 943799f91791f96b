"""Death without warning: what was acknowledged is there, what was under way is `interrupted`, the chains are whole."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from os import kill
from pathlib import Path

import pytest
from sqlalchemy import select

from mcpproxy.activity.chain import public_key_in
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.tables import activity, activity_open_calls
from mcpproxy.activity.verify import verify
from mcpproxy.storage.engine import Storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]

KILLS = 20

# Loads everything once, and for each line on stdin forks a process in which eight callers write without end. Each
# prints what the journal acknowledged: `opened ID` and `closed ID`.
PROGRAM = """
import asyncio, os, pathlib, sys
from msgspec import Raw, structs
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record
from mcpproxy.storage.engine import open_storage
import psycopg, cryptography.hazmat.primitives.asymmetric.ed25519

def say(*words):
    os.write(1, (" ".join(words) + "\\n").encode())

async def caller(journal, modifies):
    while True:
        response = Raw(b'"' + b"x" * 300 + b'"')
        record = Record(type="tool_call", source="mcp", status="success", tool_name="t", response=response)
        if modifies:
            await journal.open_call(record)
            say("opened", record.id)
            await asyncio.sleep(0)
            await journal.close_call(structs.replace(record, duration_ms=1.0))
        else:
            await journal.write(record)
        say("closed", record.id)

async def main():
    storage = open_storage(sys.argv[1], pathlib.Path(sys.argv[2]))
    journal = Journal(storage, pathlib.Path(sys.argv[2]))
    await journal.start()
    await asyncio.gather(*(caller(journal, n % 2) for n in range(8)))

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        say("pid", str(os.getpid()))
        asyncio.run(main())
    os.waitpid(child, 0)
    say("dead")
"""


@pytest.fixture
def zygote(setting: str, data_dir: Path, storage: Storage) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, setting, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def run_and_kill(process: "subprocess.Popen[str]", after: int) -> tuple[set[str], set[str]]:
    """One life, ended after so many acknowledgements; what was opened and what was closed in it."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    opened: set[str] = set()
    closed: set[str] = set()
    pid = 0
    for line in process.stdout:
        word, *rest = line.split()
        if word == "dead":
            break
        if word == "pid":
            pid = int(rest[0])
            continue
        (opened if word == "opened" else closed).add(rest[0])
        if len(closed) == after and pid:
            # Somewhere within the next commit, not always at the same place of it.
            time.sleep(random.random() / 200)
            kill(pid, signal.SIGKILL)
            pid = 0
    return opened, closed


@pytest.mark.anyio
async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(
    zygote: "subprocess.Popen[str]", storage: Storage, data_dir: Path, running: Running
) -> None:
    opened: set[str] = set()
    closed: set[str] = set()
    for life in range(KILLS):
        newly_opened, newly_closed = run_and_kill(zygote, after=20 + 10 * life)
        assert newly_closed
        opened |= newly_opened
        closed |= newly_closed
        with storage.read() as connection:
            recorded = list(connection.execute(select(activity.c.id)).scalars())
            under_way = set(connection.execute(select(activity_open_calls.c.id)).scalars())
        assert closed <= set(recorded)
        assert opened <= set(recorded) | under_way
        assert len(recorded) == len(set(recorded))
        report = verify(storage, public_key_in(data_dir))
        assert report.ok, report.problems
        assert len(report.chains) == life + 1
    async with running():
        pass
    with storage.read() as connection:
        status = {row.id: row.status for row in connection.execute(select(activity.c.id, activity.c.status))}
        assert connection.execute(select(activity_open_calls)).all() == []
    assert opened | closed <= status.keys()
    assert {status[id_] for id_ in closed} == {"success"}
    assert {status[id_] for id_ in opened - closed} <= {"success", "interrupted"}
    report = verify(storage, public_key_in(data_dir))
    assert report.ok, report.problems
    assert report.unanchored == 0
    assert all(chain.ended for chain in report.chains)
