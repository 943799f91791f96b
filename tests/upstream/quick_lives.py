"""Servers that do not wait long before they are tried again."""

import pytest
from tests.support.children import bad_server

from mcpproxy.upstream import server as life

GOOD = bad_server("good")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 0.4)
    monkeypatch.setattr(life, "HANDSHAKE_PATIENCE", 20.0)
