"""The migrations build exactly the tables that the code uses."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import mcpproxy.catalog.tables  # noqa: F401 - defines its tables on the shared metadata
from mcpproxy.storage.engine import metadata, open_storage
from mcpproxy.storage.migrate import HEAD, MIGRATIONS


def test_the_known_head_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_migrations_build_the_tables_that_the_code_defines(storage_setting: str, tmp_path: Path) -> None:
    storage = open_storage(storage_setting, tmp_path)
    with storage.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    storage.close()
