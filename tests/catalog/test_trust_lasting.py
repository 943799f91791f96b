"""Do decisions outlast restarts, other processes, a database that fails and a server that floods?"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete
from tests.catalog.trust_desk import DELETE, LIAR, READ, WRITE, Desk, listing
from tests.support.postgres import postgres_server, postgres_url, storage_setting

from mcpproxy.catalog.tables import tool_lists
from mcpproxy.catalog.trust_store import TrustStore
from mcpproxy.storage.engine import Storage, open_storage

__all__ = ["postgres_server", "postgres_url", "storage_setting"]


def test_decisions_survive_a_restart_on_either_database(storage_setting: str, tmp_path: Path) -> None:
    storage = open_storage(storage_setting, tmp_path)

    async def first() -> None:
        desk = Desk(storage)
        await desk.catalog.put(listing(READ, DELETE, instructions="Be\x00 brief \U0001f600."))
        await desk.catalog.put(listing(READ, LIAR, WRITE, instructions="Be\x00 brief \U0001f600."))
        await desk.approve("github:create_repo")
        await desk.catalog.revoke("github", "list_repos", identity='["github-mcp"]', by="bob")

    async def second() -> None:
        desk = Desk(storage)
        await desk.catalog.restore({"github": '["github-mcp"]'})
        expected = {"github:delete_repo": "changed", "github:list_repos": "rejected"}
        assert desk.visible == ["github:create_repo"] and desk.waiting == expected
        await desk.catalog.put(listing(READ, DELETE, WRITE, instructions="Be\x00 brief \U0001f600."))
        assert desk.visible == ["github:create_repo", "github:delete_repo"]
        assert desk.catalog.snapshot.listings["github"].instructions == "Be\x00 brief \U0001f600."
        events = [(event.event, event.tool, event.by) for event in desk.guard.history("github")]
        assert events[:2] == [("revoked", "list_repos", "bob"), ("approved", "create_repo", "ada")]
        assert sorted(events[2:], key=str) == [
            ("approved", "", "first_use"),
            ("approved", "delete_repo", "first_use"),
            ("approved", "list_repos", "first_use"),
        ]

    asyncio.run(first())
    asyncio.run(second())
    storage.close()


def test_pins_survive_the_loss_of_the_list_itself(storage: Storage) -> None:
    async def main() -> None:
        await Desk(storage).catalog.put(listing(DELETE))
        with storage.write() as connection:
            connection.execute(delete(tool_lists))
        desk = Desk(storage)
        await desk.catalog.restore({"github": '["github-mcp"]'})
        await desk.catalog.put(listing(LIAR))
        assert desk.visible == [] and desk.waiting == {"github:delete_repo": "changed"}

    asyncio.run(main())


def test_another_process_sees_what_was_decided_here(storage_setting: str, tmp_path: Path) -> None:
    storage = open_storage(storage_setting, tmp_path)

    async def main() -> None:
        one, other = Desk(storage), Desk(storage)
        for desk in (one, other):
            await desk.catalog.put(listing(READ))
            await desk.catalog.put(listing(READ, WRITE))
        await one.approve("github:create_repo")
        assert other.waiting == {"github:create_repo": "pending"}
        await other.catalog.refresh()
        assert other.visible == ["github:create_repo", "github:list_repos"]
        await one.catalog.revoke("github", "create_repo", identity='["github-mcp"]', by="ada")
        await other.catalog.refresh()
        assert other.waiting == {"github:create_repo": "rejected"}

    asyncio.run(main())
    storage.close()


def test_two_processes_that_see_a_server_for_the_first_time_agree_on_its_baseline(
    storage_setting: str, tmp_path: Path
) -> None:
    storage = open_storage(storage_setting, tmp_path)

    async def main() -> None:
        desks = [Desk(storage) for _ in range(4)]
        lists = [listing(READ, DELETE) if number % 2 else listing(READ, LIAR) for number in range(4)]
        await asyncio.gather(*(desk.catalog.put(one) for desk, one in zip(desks, lists, strict=True)))
        seen = {desk.waiting.get("github:delete_repo", "approved") for desk in desks}
        assert seen == {"approved", "changed"}, "one of the two versions came first, and the other one waits"

    asyncio.run(main())
    storage.close()


class Broken(TrustStore):
    """A store that takes nothing new, as a full disk does."""

    def approve(self, *_given: Any) -> Any:
        raise OSError("database or disk is full")


def test_an_approval_that_cannot_be_written_down_does_not_count(
    storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        desk = Desk(storage, store=Broken(storage))
        await desk.catalog.put(listing(READ))
        assert desk.visible == [] and desk.waiting == {"github:list_repos": "pending"}
        assert "could not be saved" in caplog.text
        healthy = Desk(storage)
        await healthy.catalog.put(listing(READ))
        assert healthy.visible == ["github:list_repos"]

    asyncio.run(main())


class Unreadable(TrustStore):
    """A store that cannot be read."""

    def load(self, server: str, identity: str) -> Any:
        raise OSError("disk I/O error")


def test_where_decisions_cannot_be_read_nothing_is_shown(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        desk = Desk(storage, store=Unreadable(storage))
        assert await desk.catalog.put(listing(READ)) == ()
        assert desk.visible == [] and "could not be held against what was approved" in caplog.text

    asyncio.run(main())


def test_a_server_that_is_dropped_while_its_list_is_judged_stays_dropped(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage)
        putting = asyncio.create_task(desk.catalog.put(listing(READ)))
        await asyncio.sleep(0)
        desk.catalog.drop("github")
        await putting
        assert desk.visible == [] and desk.catalog.snapshot.listings == {}

    asyncio.run(main())


def test_an_approval_of_a_server_that_is_away_leaves_it_away(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage, "manual")
        await desk.catalog.put(listing(READ))
        desk.catalog.mark_stale("github")
        await desk.approve("github:list_repos")
        assert desk.visible == ["github:list_repos"] and desk.catalog.snapshot.listings["github"].stale

    asyncio.run(main())


def test_a_flood_of_self_approved_versions_does_not_fill_the_history(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.catalog.trust_store.MAX_AUTOMATIC", 5)

    async def main() -> None:
        desk = Desk(storage, "scan")
        await desk.catalog.put(listing(READ, WRITE))
        await desk.catalog.revoke("github", "create_repo", identity='["github-mcp"]', by="ada")
        for number in range(20):
            await desk.catalog.put(listing({**READ, "description": f"Lists {number} repositories."}, WRITE))
        events = [event.by for event in desk.guard.history("github")]
        assert events.count("scan") == 5 and events.count("ada") == 1

    asyncio.run(main())


def test_a_server_with_more_news_than_can_be_scanned_gets_none_of_the_rest_approved(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpproxy.catalog.look.MAX_SCANNED", 3)

    async def main() -> None:
        desk = Desk(storage, "scan")
        tools = [{"name": f"tool_{number}"} for number in range(5)]
        await desk.catalog.put(listing(*tools))
        assert len(desk.visible) == 3 and set(desk.waiting.values()) == {"pending"}
        await desk.catalog.put(listing(*tools))
        assert len(desk.visible) == 5, "the next list finds time for them"

    asyncio.run(main())
