"""A real PostgreSQL for the tests of every room, and an empty database on it for each test."""

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest


def start_server(folder: Path) -> Any:
    """Starts a server with its data in this folder.

    Not under pytest's own folder: the server runs as another user where the tests run as root, and must get there.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on an unset XDG_RUNTIME_DIR
        from pgserver.postgres_server import get_server
    return get_server(folder, cleanup_mode="delete")


@contextmanager
def new_database(server: str, template: str = "template1") -> Iterator[str]:
    """A database on this server, a copy of that one, for the length of a block."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE {template}')
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    # Named by process, so that every room's tests in it share one server.
    server = start_server(Path(tempfile.gettempdir()) / f"mcpproxy-pg-{os.getpid()}")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    with new_database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def storage_setting(request: pytest.FixtureRequest) -> str:
    """The `storage` setting of each kind of database."""
    return "sqlite" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
