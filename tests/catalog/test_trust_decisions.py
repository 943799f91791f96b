"""An operator's decision holds for exactly what was shown, and nothing else undoes it."""

import asyncio

import pytest
from tests.catalog.trust_desk import DELETE, LIAR, POISON, READ, WRITE, Desk, listing, news

from mcpproxy.catalog.approval import version_of_all
from mcpproxy.catalog.catalog import VersionChanged
from mcpproxy.catalog.guard import NothingToDecide
from mcpproxy.storage.engine import Storage


def test_an_approval_lets_exactly_what_was_shown_in(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage)
        await desk.catalog.put(listing(DELETE))
        await desk.catalog.put(listing(LIAR))
        shown = desk.catalog.snapshot.waiting["github:delete_repo"].hash
        await desk.catalog.put(listing({**LIAR, "description": POISON}))
        with pytest.raises(VersionChanged):
            await desk.catalog.approve("github", "delete_repo", version=shown, by="ada")
        assert desk.visible == []
        await desk.catalog.put(listing(LIAR))
        changes = await desk.catalog.approve("github", "delete_repo", version=shown, by="ada")
        assert news(changes) == {"approved": ["delete_repo"]} and changes[0].by == "ada"
        assert desk.catalog.snapshot.tools["github:delete_repo"].annotations == {"readOnlyHint": True}
        assert await desk.catalog.put(listing(LIAR)) == (), "the approval itself was the news"

    asyncio.run(main())


def test_everything_that_waits_can_be_approved_at_once_but_for_what_was_refused(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage, "manual")
        await desk.catalog.put(listing(READ, WRITE, DELETE))
        waiting = desk.catalog.snapshot.waiting
        await desk.catalog.reject("github", "delete_repo", version=waiting["github:delete_repo"].hash, by="ada")
        shown = version_of_all(desk.catalog.snapshot.waiting_of("github"))
        await desk.catalog.put(listing(READ, {**WRITE, "description": POISON}, DELETE))
        with pytest.raises(VersionChanged):
            await desk.catalog.approve("github", None, version=shown, by="ada")
        await desk.catalog.put(listing(READ, WRITE, DELETE))
        await desk.catalog.approve("github", None, version=shown, by="ada")
        assert desk.visible == ["github:create_repo", "github:list_repos"]
        assert desk.waiting == {"github:delete_repo": "rejected"}
        await desk.approve("github:delete_repo")
        assert desk.waiting == {}, "named, it can be approved after all"

    asyncio.run(main())


def test_a_refused_tool_is_not_let_in_by_a_scan_in_other_words(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage, "scan")
        await desk.catalog.put(listing(READ))
        await desk.catalog.revoke("github", "list_repos", identity='["github-mcp"]', by="ada")
        assert desk.visible == [] and desk.waiting == {"github:list_repos": "rejected"}
        await desk.catalog.put(listing({**READ, "description": "Lists all repositories."}))
        assert desk.waiting == {"github:list_repos": "pending"}

    asyncio.run(main())


def test_a_revoked_tool_stays_away_though_it_leaves_and_comes_back_after_a_restart(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage)
        await desk.catalog.put(listing(READ, WRITE))
        await desk.catalog.revoke("github", "create_repo", identity='["github-mcp"]', by="ada")
        await desk.catalog.put(listing(READ))
        desk.catalog.drop("github")
        again = Desk(storage)
        await again.catalog.restore({})
        await again.catalog.put(listing(READ, WRITE))
        assert again.visible == ["github:list_repos"] and again.waiting == {"github:create_repo": "rejected"}

    asyncio.run(main())


def test_there_must_be_something_to_decide_and_somebody_who_decides(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage, "manual")
        with pytest.raises(NothingToDecide):
            await desk.catalog.approve("github", "list_repos", version="", by="ada")
        await desk.catalog.put(listing(READ))
        with pytest.raises(NothingToDecide):
            await desk.catalog.approve("github", "no_such_tool", version="", by="ada")
        with pytest.raises(NothingToDecide):
            await desk.catalog.revoke("github", "list_repos", identity='["github-mcp"]', by="ada")
        for nobody in ("", "scan", "first_use"):
            with pytest.raises(ValueError, match="needs the name"):
                await desk.approve("github:list_repos", by=nobody)
        assert desk.visible == []

    asyncio.run(main())


def test_a_server_that_was_quarantined_waits_tool_by_tool_when_it_is_let_out(storage: Storage) -> None:
    async def main() -> None:
        for trust in ("first_use", "scan"):
            desk = Desk(storage, trust)
            server, identity = trust, '["github-mcp"]'
            changes = await desk.catalog.quarantine(server, identity=identity, by="config")
            assert news(changes) == {"quarantined": []} and changes[0].record_type == "server_change"
            assert await desk.catalog.quarantine(server, identity=identity, by="config") == ()
            await desk.catalog.put(listing(READ, server=server))
            assert desk.waiting == {f"{server}:list_repos": "pending"}

    asyncio.run(main())


def test_a_quarantined_server_can_be_approved_with_all_that_it_lists_first(storage: Storage) -> None:
    async def main() -> None:
        desk = Desk(storage, "manual")
        identity = '["github-mcp"]'
        await desk.catalog.quarantine("github", identity=identity, by="config")
        await desk.catalog.release("github", identity=identity, by="ada")
        changes = await desk.catalog.put(listing(READ, DELETE))
        assert news(changes) == {"approved": ["delete_repo", "list_repos"]} and changes[0].by == "ada"
        await desk.catalog.put(listing(READ, DELETE, WRITE))
        assert desk.waiting == {"github:create_repo": "pending"}, "the word of approval was about the first list"
        changes = await desk.catalog.release("github", identity=identity, by="ada")
        assert news(changes) == {"released": [], "approved": ["create_repo"]}

    asyncio.run(main())
