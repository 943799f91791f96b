"""Does an agent hear how many tools it cannot have yet, and nothing of what they say?"""

import asyncio
from pathlib import Path

from tests.catalog.trust_desk import DELETE, POISON, READ, Desk, listing

from mcpproxy.catalog.withheld import count_matching, waiting_note
from mcpproxy.storage.engine import open_storage


def test_matching_tools_that_wait_are_counted_and_not_named(tmp_path: Path) -> None:
    storage = open_storage("sqlite", tmp_path)

    async def main() -> None:
        desk = Desk(storage, "manual")
        forks = {"name": "list_forks", "description": f"Lists forks. {POISON}"}
        await desk.catalog.put(listing(READ, DELETE, forks, instructions="Lists repositories."))
        waiting = list(desk.catalog.snapshot.waiting.values())
        assert count_matching(waiting, "delete a repository") == 1
        assert count_matching(waiting, "list all repositories") == 1
        assert count_matching(waiting, "weather tomorrow in Paris") == 0
        assert count_matching(waiting, "") == count_matching(waiting, "the of a") == 0
        note = waiting_note(count_matching(waiting, "forks"))
        assert note is not None and note.startswith("1 matching tool waits for approval") and "fork" not in note

    asyncio.run(main())
    storage.close()


def test_nothing_is_said_where_nothing_waits() -> None:
    assert waiting_note(0) is None
    assert str(waiting_note(12)).startswith("12 matching tools wait for approval")
