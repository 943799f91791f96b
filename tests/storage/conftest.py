"""A real PostgreSQL for the tests of this room, and an empty database on it for each test."""

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    # Named by process, so that every room's tests in it share one server. Not under pytest's own folder:
    # the server runs as another user where the tests run as root, and that user must reach it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on an unset XDG_RUNTIME_DIR
        from pgserver.postgres_server import get_server
    folder = Path(tempfile.gettempdir()) / f"mcpproxy-pg-{os.getpid()}"
    server = get_server(folder, cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield postgres_server.replace("/postgres?", f"/{name}?")
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", "postgresql"])
def storage_setting(request: pytest.FixtureRequest) -> str:
    """The `storage` setting of each kind of database."""
    return "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
