"""Servers that do not wait long before they are tried again."""

from typing import Any

import pytest
from tests.support.children import bad_server

from mcpproxy.config.models import Server
from mcpproxy.upstream import server as life
from mcpproxy.upstream import watch

GOOD = bad_server("good")
LIST_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, and patience with a slow machine."""
    monkeypatch.setattr(life, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 0.4)
    monkeypatch.setattr(life, "HANDSHAKE_PATIENCE", 20.0)


@pytest.fixture(autouse=True)
def quick_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, between the lists of a server too."""
    monkeypatch.setattr(life, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(life, "LONGEST_PAUSE", 0.4)
    monkeypatch.setattr(watch, "RELIST_PAUSE", 0.05)


def at(url: str, **more: Any) -> Server:
    return Server(name="a", url=url, **more)
