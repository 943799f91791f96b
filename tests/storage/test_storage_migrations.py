"""The migrations build exactly the tables that the code uses."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import mcpproxy.access.tables
import mcpproxy.activity.tables
import mcpproxy.catalog.tables  # noqa: F401 - each defines its tables on the shared metadata
from mcpproxy.storage.engine import metadata, open_storage
from mcpproxy.storage.migrate import HEAD, MIGRATIONS


def _is_ours(_object: object, name: str | None, kind: str, _reflected: bool, _other: object) -> bool:
    """Leaves out the text search, which each database does in its own way."""
    return not (kind in {"table", "index"} and name is not None and "activity_search" in name)


def test_the_known_head_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_migrations_build_the_tables_that_the_code_defines(storage_setting: str, tmp_path: Path) -> None:
    storage = open_storage(storage_setting, tmp_path)
    with storage.read() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": _is_ours, "compare_type": True})
        assert compare_metadata(context, metadata) == []
    storage.close()
