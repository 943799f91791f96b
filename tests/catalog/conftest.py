"""A database for the tests of this room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpproxy.storage.engine import Storage, open_storage


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    opened = open_storage("sqlite", tmp_path)
    yield opened
    opened.close()
