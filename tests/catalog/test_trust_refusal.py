"""Does an agent hear that a tool waits and who can help, and nothing of what the server wrote?"""

import asyncio
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from tests.catalog.trust_desk import DELETE, POISON, Desk, listing

from mcpproxy.catalog.refusal import not_approved
from mcpproxy.storage.engine import open_storage


@pytest.mark.parametrize("state", ["pending", "changed", "rejected"])
def test_a_refusal_says_who_can_approve_where(state: Literal["pending", "changed", "rejected"]) -> None:
    refusal = not_approved("github:delete_repo", state)
    assert refusal.code == "NOT_APPROVED"
    assert "mcpproxy tools approve github:delete_repo" in refusal.message and "dashboard" in refusal.message
    assert refusal.details == {"tool": "github:delete_repo", "state": state}


def test_a_quarantined_server_is_approved_as_a_whole() -> None:
    assert "mcpproxy upstream approve github" in not_approved("github:delete_repo", "quarantined").message


def test_nothing_that_the_server_wrote_is_in_a_refusal(tmp_path: Path) -> None:
    storage = open_storage("sqlite", tmp_path)

    async def main() -> None:
        desk = Desk(storage)
        await desk.catalog.put(listing(DELETE))
        poisoned = {**DELETE, "title": "Poison one", "description": POISON, "inputSchema": {"title": "Poison two"}}
        await desk.catalog.put(listing(poisoned))
        waiting = desk.catalog.snapshot.waiting["github:delete_repo"]
        said = msgspec.json.encode(not_approved(waiting.id, waiting.state)).decode().lower()
        for words in ("id_rsa", "poison", "do not tell", "repository"):
            assert words not in said

    asyncio.run(main())
    storage.close()


def test_a_name_is_repeated_without_its_tricks() -> None:
    refusal = not_approved("github:x\u202e\n\x1b[8m" + "a" * 500, "pending")
    assert "\u202e" not in refusal.message and "\n" not in refusal.message and "\x1b" not in refusal.message
    assert len(refusal.message) < 700
