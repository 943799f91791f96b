"""Verification: each way to alter the log with plain SQL is found, and the record is named."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import text

from mcpproxy.activity.chain import KEY_FILE, Signer, public_key_in
from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record
from mcpproxy.activity.retention import step_remover
from mcpproxy.activity.verify import Anchor, Problem, Report, verify
from mcpproxy.storage.engine import Storage, open_storage

Running = Callable[..., AbstractAsyncContextManager[Journal]]
Make = Callable[..., Record]


@pytest.fixture
def sql(storage: Storage) -> Callable[[str], None]:
    """What anybody with access to the database can do."""

    def run(*statements: str) -> None:
        with storage.write() as connection:
            for statement in statements:
                connection.execute(text(statement))

    return run


@pytest.fixture
def check(storage: Storage, data_dir: Path) -> Callable[..., Report]:
    return lambda **options: verify(storage, public_key_in(data_dir), **options)


def first(report: Report) -> Problem:
    assert not report.ok
    return report.problems[0]


async def write_ten(running: Running, call: Make) -> list[Record]:
    records = [call(f"tool_{n}") for n in range(1, 11)]
    async with running() as journal:
        for record in records:
            await journal.write(record)
    return records


@pytest.mark.anyio
async def test_an_untouched_log_is_whole(running: Running, check: Callable[..., Report], call: Make) -> None:
    await write_ten(running, call)
    report = check()
    assert report.ok, report.problems
    assert (report.records, report.unanchored) == (10, 0)
    (chain,) = report.chains
    assert (chain.first, chain.last, chain.anchored, chain.ended) == (1, 10, 10, True)


@pytest.mark.anyio
async def test_an_empty_log_is_whole(check: Callable[..., Report]) -> None:
    assert check().ok


@pytest.mark.anyio
@pytest.mark.parametrize(
    "change",
    [
        "status = 'error'",
        "arguments = '{}'",
        "response = NULL",
        "timestamp = timestamp + 1",
        "duration_ms = 1.5000001",
        "metadata = '{}'",
        "metadata = 'no json'",
        "request_id = 'x'",
        "writer = writer, source = 'cli'",
        "intent_type = 'read'",
        "search = 'nothing'",
        "error_message = ''",
    ],
)
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_an_edited_record_is_named(
    change: str, running: Running, check: Callable[..., Report], sql: Callable[..., None], call: Make
) -> None:
    records = await write_ten(running, call)
    sql(f"UPDATE activity SET {change} WHERE position = 4")
    problem = first(check())
    assert (problem.kind, problem.position, problem.id) == ("edited", 4, records[3].id)


@pytest.mark.anyio
async def test_an_edited_deleted_inserted_or_moved_record_is_named_on_both_databases(
    running: Running, check: Callable[..., Report], sql: Callable[..., None], storage: Storage, call: Make
) -> None:
    records = await write_ten(running, call)
    sql("CREATE TABLE backup AS SELECT * FROM activity")

    def restore() -> None:
        sql("DELETE FROM activity", "INSERT INTO activity SELECT * FROM backup")
        assert check().ok

    sql("UPDATE activity SET tool_name = 'harmless' WHERE position = 4")
    problem = first(check())
    assert (problem.kind, problem.id) == ("edited", records[3].id)
    restore()

    sql("DELETE FROM activity WHERE position = 4")
    problem = first(check())
    assert (problem.kind, problem.position) == ("missing", 4)
    assert f"before record {records[4].id}" in problem.text
    restore()

    columns = "id, type, source, status, timestamp, metadata, writer, position, prev_hash, hash, search"
    sql(
        f"INSERT INTO activity (seq, {columns}) SELECT 5000, 'forged', {columns.removeprefix('id, ')} "
        "FROM activity WHERE position = 4"
    )
    problem = first(check())
    assert (problem.kind, problem.position, problem.id) == ("inserted", 4, "forged")
    restore()

    sql(
        "UPDATE activity SET seq = 9001 WHERE position = 4",
        "UPDATE activity SET seq = (SELECT MIN(seq) FROM backup WHERE position = 4) WHERE position = 5",
        "UPDATE activity SET seq = (SELECT MIN(seq) FROM backup WHERE position = 5) WHERE position = 4",
    )
    problem = first(check())
    assert (problem.kind, problem.position, problem.id) == ("reordered", 4, records[3].id)
    restore()

    # The content of two rows is swapped, places and hashes stay.
    sql(
        "UPDATE activity SET id = (SELECT id FROM backup WHERE position = 9 - activity.position), "
        "tool_name = (SELECT tool_name FROM backup WHERE position = 9 - activity.position) WHERE position IN (4, 5)"
    )
    problem = first(check())
    assert (problem.kind, problem.position) == ("edited", 4)


@pytest.mark.anyio
async def test_a_record_replaced_with_a_fitting_hash_is_found_by_its_successor(
    running: Running, check: Callable[..., Report], storage: Storage, sql: Callable[..., None], call: Make
) -> None:
    from mcpproxy.activity.chain import hash_of
    from mcpproxy.activity.store import select_records, stored
    from mcpproxy.activity.tables import activity

    records = await write_ten(running, call)
    for position in (10, 4):  # the last one is held against the signed end, the others against their successors
        sql(f"UPDATE activity SET status = 'error' WHERE position = {position}")
        with storage.write() as connection:
            row = connection.execute(select_records().where(activity.c.position == position)).one()
            connection.execute(activity.update().where(activity.c.seq == row.seq).values(hash=hash_of(stored(row))))
        problem = first(check())
        assert (problem.kind, problem.id) == ("replaced", records[position - 1].id)


@pytest.mark.anyio
async def test_a_cut_tail_is_found_against_the_last_head(
    running: Running, check: Callable[..., Report], sql: Callable[..., None], call: Make
) -> None:
    records = await write_ten(running, call)
    sql("DELETE FROM activity WHERE position > 7")
    problem = first(check())
    assert (problem.kind, problem.position) == ("cut", 8)
    assert f"went to position 10, and ends at 7 with record {records[6].id}" in problem.text


@pytest.mark.anyio
async def test_a_tail_cut_with_its_signed_word_is_found_by_one_kept_elsewhere(
    running: Running, check: Callable[..., Report], sql: Callable[..., None], call: Make
) -> None:
    async with running() as journal:
        await journal.write(*(call() for _ in range(10)))
    head = journal.stats().head
    assert head is not None
    sql("DELETE FROM activity WHERE position > 7", "DELETE FROM activity_checkpoints WHERE kind = 'end'")
    assert check().ok
    anchor = Anchor(writer=head.writer, position=head.position, hash=head.hash)
    assert first(check(anchors=[anchor])).kind == "cut"


@pytest.mark.anyio
async def test_a_record_added_after_the_end_is_found(
    running: Running, check: Callable[..., Report], storage: Storage, call: Make
) -> None:
    from mcpproxy.activity.chain import link
    from mcpproxy.activity.ledger import Ledger, row_of
    from mcpproxy.activity.prepare import prepare
    from mcpproxy.config.models import Activity

    await write_ten(running, call)
    ledger = Ledger(storage)
    ledger.connect(Activity())
    ledger.begin()
    ((writer,),) = ledger.execute("SELECT DISTINCT writer FROM activity").fetchall()
    tail = ledger.tail(writer)
    forged = prepare(call("forged"), writer, 11, 1000, str)
    ledger.append([row_of(forged, tail.hash, link(forged.record, tail.hash))])
    ledger.commit()
    ledger.drop()
    problem = first(check())
    assert (problem.kind, problem.id) == ("inserted", forged.record.id)
    assert "after its writer had ended at position 10" in problem.text


@pytest.mark.anyio
async def test_a_run_that_is_missing_as_a_whole_is_missed(
    running: Running, check: Callable[..., Report], storage: Storage, sql: Callable[..., None], call: Make
) -> None:
    for _ in range(3):
        await write_ten(running, call)
    writers = [chain.writer for chain in check().chains]
    assert check().ok
    assert len(writers) == 3
    sql(
        f"DELETE FROM activity WHERE writer = '{writers[1]}'",
        f"DELETE FROM activity_checkpoints WHERE writer = '{writers[1]}'",
    )
    problem = first(check())
    assert (problem.kind, problem.writer) == ("missing_run", writers[2])


@pytest.mark.anyio
async def test_records_without_a_signed_start_are_found(
    running: Running, check: Callable[..., Report], sql: Callable[..., None], call: Make
) -> None:
    records = await write_ten(running, call)
    sql("DELETE FROM activity_checkpoints")
    problem = first(check())
    assert (problem.kind, problem.id) == ("unknown_writer", records[0].id)


@pytest.mark.anyio
async def test_a_changed_statement_is_found(
    running: Running, check: Callable[..., Report], sql: Callable[..., None], call: Make
) -> None:
    await write_ten(running, call)
    sql("DELETE FROM activity WHERE position > 7", "UPDATE activity_checkpoints SET position = 7 WHERE kind = 'end'")
    problem = first(check())
    assert problem.kind == "signature"
    assert "wrong signature" in problem.text


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_a_log_that_another_key_signed_is_not_trusted(
    running: Running, check: Callable[..., Report], data_dir: Path, call: Make
) -> None:
    await write_ten(running, call)
    old = public_key_in(data_dir)
    assert old is not None
    for name in (KEY_FILE, "activity-signing.pub"):
        (data_dir / name).unlink()
    Signer.load(data_dir)
    problem = first(check())
    assert problem.kind == "signature"
    assert f"unknown key, {old.hex()}" in problem.text
    assert check(trusted_keys=[old]).ok


@pytest.mark.anyio
async def test_a_changed_or_removed_index_row_is_found(
    running: Running, check: Callable[..., Report], sql: Callable[..., None], call: Make
) -> None:
    records = await write_ten(running, call)
    sql("UPDATE activity_index SET status = 'error' WHERE tool_name = 'tool_4'")
    assert (first(check()).kind, first(check()).id) == ("index", records[3].id)
    sql("DELETE FROM activity_index WHERE tool_name = 'tool_3'")
    assert first(check()).id == records[2].id


@pytest.mark.anyio
async def test_what_is_not_signed_yet_is_counted(
    running: Running, check: Callable[..., Report], call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.activity.writer.QUIET_SECONDS", 3600)
    async with running() as journal:
        await journal.write(*(call() for _ in range(6)))
        report = check()
        assert report.ok
        assert (report.records, report.unanchored) == (6, 6)
        monkeypatch.setattr("mcpproxy.activity.writer.MOST_UNSIGNED", 5)
        await journal.write(call())
        await journal.write(call())
        assert check().unanchored == 1
    assert check().unanchored == 0


@pytest.mark.anyio
async def test_a_pruned_log_still_verifies_and_a_removed_beginning_does_not(
    running: Running, check: Callable[..., Report], sql: Callable[..., None], call: Make
) -> None:
    async with running() as journal:
        await journal.write(*(call() for _ in range(20)))
        await journal.run(lambda writer: writer.ledger.digest(100))
        await journal.run(step_remover(upto=8))
        report = check()
        assert report.ok, report.problems
        assert (report.chains[0].first, report.chains[0].pruned) == (9, 8)
        await journal.write(call())
    assert check().ok
    sql("DELETE FROM activity WHERE position = 9")
    problem = first(check())
    assert (problem.kind, problem.position) == ("missing", 9)


@pytest.mark.anyio
async def test_a_log_pruned_to_nothing_verifies_and_goes_on(
    running: Running, check: Callable[..., Report], call: Make
) -> None:
    async with running() as journal:
        await journal.write(*(call() for _ in range(5)))
        await journal.run(lambda writer: writer.ledger.digest(100))
        await journal.run(step_remover(upto=5))
        assert check().ok
        await journal.write(call())
    report = check()
    assert report.ok, report.problems
    assert (report.chains[0].first, report.chains[0].last) == (6, 6)


@pytest.mark.anyio
async def test_retention_during_a_verification_is_no_problem(
    running: Running, storage: Storage, data_dir: Path, call: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcpproxy.activity import verify as module

    monkeypatch.setattr(module, "_ROWS_AT_A_TIME", 5)
    async with running() as journal:
        await journal.write(*(call() for _ in range(20)))
        await journal.run(lambda writer: writer.ledger.digest(100))
        check = module._Check(storage, set())
        check.read_statements([])
        await journal.run(step_remover(upto=9))
        await asyncio.to_thread(check.walk)
        assert check.report().ok


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["sqlite"], indirect=True)
async def test_replicas_with_keys_of_their_own_verify_together(
    postgres_url: str, tmp_path: Path, running: Running, call: Make
) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    stores = [open_storage(postgres_url, folder) for folder in folders]
    for folder in folders:
        folder.mkdir()
    async with running(on=stores[0], at=folders[0]) as one, running(on=stores[1], at=folders[1]) as two:
        await asyncio.gather(*(journal.write(call()) for journal in (one, two) for _ in range(25)))
    report = verify(stores[0], public_key_in(folders[0]))
    assert report.ok, report.problems
    assert sorted(chain.records for chain in report.chains) == [25, 25]
    assert len({statement["key"] for chain in report.chains for statement in chain.statements}) == 2
    other = public_key_in(folders[1])
    assert other is not None
    assert not verify(stores[0], public_key_in(folders[0]), trusted_keys=[sha256(b"someone").digest()]).ok
    assert verify(stores[0], public_key_in(folders[0]), trusted_keys=[other]).ok
    for store in stores:
        store.close()


def test_the_signing_key_is_only_for_its_owner_and_made_once(data_dir: Path) -> None:
    key = Signer.load(data_dir).public_key
    assert (data_dir / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert Signer.load(data_dir).public_key == key == public_key_in(data_dir)
    assert sorted(file.name for file in data_dir.iterdir()) == ["activity-signing.key", "activity-signing.pub"]
