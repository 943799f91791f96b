"""The storages of each kind for the tests of this room."""

from tests.support.postgres import postgres_server, postgres_url, storage_setting

__all__ = ["postgres_server", "postgres_url", "storage_setting"]
