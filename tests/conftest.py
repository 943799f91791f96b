"""Fixtures that every room's tests may use."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def as_talkative_as_before() -> Iterator[None]:
    """A test that has the house log less must not silence what the next one listens for."""
    house = logging.getLogger("mcpproxy")
    level = house.level
    yield
    house.setLevel(level)
