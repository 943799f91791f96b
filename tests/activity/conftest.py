"""A journal on each kind of database: SQLite in a file, and a real PostgreSQL."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec import Raw
from tests.support.postgres import new_database, postgres_server, start_server

from mcpproxy.activity.journal import Journal
from mcpproxy.activity.record import Record
from mcpproxy.config.models import Activity
from mcpproxy.storage.engine import Storage, open_storage

__all__ = ["postgres_server"]

Running = Callable[..., AbstractAsyncContextManager[Journal]]


@pytest.fixture(scope="session")
def start_postgres() -> Callable[[Path], Any]:
    """Starts a server of its own with its data in this folder."""
    return start_server


@pytest.fixture(scope="session")
def migrated_template(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database to copy, so that each test need not migrate its own."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE migrated")
    open_storage(postgres_server.replace("/postgres?", "/migrated?"), tmp_path_factory.mktemp("template")).close()
    return "migrated"


@pytest.fixture
def postgres_url(postgres_server: str, migrated_template: str) -> Iterator[str]:
    with new_database(postgres_server, migrated_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def setting(request: pytest.FixtureRequest) -> str:
    """The `storage` setting of each kind of database."""
    return "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir(mode=0o700)
    return tmp_path / "data"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for SQLite."""
    folder = tmp_path_factory.mktemp("template")
    open_storage("sqlite", folder).close()
    return folder / "mcpproxy.db"


@pytest.fixture
def storage(setting: str, data_dir: Path, migrated_file: Path) -> Iterator[Storage]:
    if setting == "sqlite":
        shutil.copy(migrated_file, data_dir)
    opened = open_storage(setting, data_dir)
    yield opened
    opened.close()


@pytest.fixture
def running(storage: Storage, data_dir: Path) -> Running:
    """A journal that runs for the length of a block, on the test's database or on another."""

    @asynccontextmanager
    async def run(
        settings: Callable[[], Activity] = Activity,
        mask: Callable[[str], str] = str,
        *,
        on: Storage | None = None,
        at: Path | None = None,
    ) -> AsyncIterator[Journal]:
        journal = Journal(on or storage, at or data_dir, settings, mask)
        await journal.start()
        try:
            yield journal
        finally:
            await journal.stop()

    return run


@pytest.fixture
def call() -> Callable[..., Record]:
    """A successful call's record; fields by name, `operation` and `reason` for its intent."""

    def make(
        tool_name: str = "create_issue",
        *,
        operation: str | None = "write",
        reason: str | None = None,
        arguments: bytes = b'{"title":"Bug"}',
        response: bytes = b'{"content":[]}',
        **fields: Any,
    ) -> Record:
        intent = {"operation_type": operation} | ({"reason": reason} if reason else {})
        defaults: dict[str, Any] = {
            "type": "tool_call",
            "source": "mcp",
            "status": "success",
            "server_name": "github",
            "duration_ms": 1.5,
            "metadata": {"intent": intent, "tool_variant": f"call_tool_{operation}"} if operation else {},
        }
        return Record(tool_name=tool_name, arguments=Raw(arguments), response=Raw(response), **(defaults | fields))

    return make


@pytest.fixture(params=["indexed", "newer"])
def log(
    request: pytest.FixtureRequest, storage: Storage, running: Running, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractAsyncContextManager[Journal]]:
    """A journal with these records in it: all of them indexed, or none of them yet."""
    monkeypatch.setattr("mcpproxy.activity.writer.QUIET_SECONDS", 3600)

    @asynccontextmanager
    async def filled(*records: Record) -> AsyncIterator[Journal]:
        async with running() as journal:
            for record in records:
                await journal.write(record)
            if request.param == "indexed":
                await journal.run(lambda writer: writer.ledger.digest(10_000))
            yield journal

    return filled
