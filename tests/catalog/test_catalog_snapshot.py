"""Does a reader always see one whole list, and does the last known one survive what happens to its server?"""

import asyncio
import threading
from typing import Any

import pytest

from mcpproxy.catalog.catalog import Catalog, Snapshot
from mcpproxy.catalog.listing import Listing, read_tools
from mcpproxy.catalog.store import ListingStore
from mcpproxy.storage.engine import Storage


def listing(server: str, *tools: str, identity: str = "x", **more: Any) -> Listing:
    found, _ = read_tools(server, [b'{"name":"%s"}' % name.encode() for name in tools])
    return Listing(server=server, identity=identity, tools=found, listed_at=100.25, **more)


def names(catalog: Catalog) -> list[str]:
    return sorted(catalog.snapshot.tools)


def test_a_listing_replaces_the_one_before_and_no_other(storage: Storage) -> None:
    async def main() -> None:
        catalog = Catalog(ListingStore(storage))
        await catalog.put(listing("a", "one", "two"))
        await catalog.put(listing("b", "one"))
        held = catalog.snapshot
        await catalog.put(listing("a", "three"))
        assert names(catalog) == ["a:three", "b:one"]
        assert sorted(held.tools) == ["a:one", "a:two", "b:one"]

    asyncio.run(main())


def test_a_tool_is_found_by_server_and_name(storage: Storage) -> None:
    async def main() -> None:
        catalog = Catalog(ListingStore(storage))
        await catalog.put(listing("a", "b:c", "plain"))
        await catalog.put(listing("a_b", "c"))
        await catalog.put(listing("a-b", "b_c"))
        snapshot = catalog.snapshot
        for tool_id in ("a:b:c", "a:plain", "a_b:c", "a-b:b_c"):
            found = snapshot.find(tool_id)
            assert found is not None and found.id == tool_id
        for unknown in ("", "a", "a:", ":plain", "plain", "b:c", "a:b", "a_b_c"):
            assert snapshot.find(unknown) is None

    asyncio.run(main())


def test_a_reader_never_sees_half_a_list(storage: Storage) -> None:
    """A thread reads while lists are swapped: every snapshot holds one generation, and its two views agree."""

    async def main() -> None:
        catalog = Catalog(ListingStore(storage))
        await catalog.put(listing("a", *(f"g0_{number}" for number in range(50))))
        torn: list[Snapshot] = []
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                snapshot = catalog.snapshot
                generations = {name.split("_")[0] for name in snapshot.listings["a"].tools}
                same = set(snapshot.tools) == {tool.id for tool in snapshot.listings["a"].tools.values()}
                if len(generations) != 1 or len(snapshot.tools) != 50 or not same:
                    torn.append(snapshot)

        reader = threading.Thread(target=read)
        reader.start()
        for generation in range(1, 20):
            await catalog.put(listing("a", *(f"g{generation}_{number}" for number in range(50))))
        done.set()
        reader.join()
        assert torn == []

    asyncio.run(main())


def test_a_snapshot_cannot_be_changed(storage: Storage) -> None:
    snapshot = Catalog(ListingStore(storage)).snapshot
    with pytest.raises(TypeError):
        snapshot.tools["a:b"] = None  # type: ignore[index]
    with pytest.raises(AttributeError):
        snapshot.listings = {}  # type: ignore[misc]


def test_watchers_hear_of_every_swap(storage: Storage) -> None:
    async def main() -> None:
        catalog = Catalog(ListingStore(storage))
        heard: list[tuple[str, list[str] | None, bool]] = []
        catalog.watch(
            lambda new, server: heard.append((server, list(new.tools) if new else None, bool(new and new.stale)))
        )
        await catalog.put(listing("a", "one"))
        catalog.mark_stale("a")
        catalog.mark_stale("a")
        catalog.mark_stale("unknown")
        catalog.drop("a")
        catalog.drop("a")
        assert heard == [("a", ["one"], False), ("a", ["one"], True), ("a", None, False)]

    asyncio.run(main())


def test_a_server_that_is_away_keeps_its_tools_marked_stale(storage: Storage) -> None:
    async def main() -> None:
        catalog = Catalog(ListingStore(storage))
        await catalog.put(listing("a", "one"))
        catalog.mark_stale("a")
        assert catalog.snapshot.listings["a"].stale and names(catalog) == ["a:one"]
        await catalog.put(listing("a", "one"))
        assert not catalog.snapshot.listings["a"].stale

    asyncio.run(main())


# What survives a restart.


async def _restored(storage: Storage, **identities: str) -> Catalog:
    catalog = Catalog(ListingStore(storage))
    await catalog.restore(identities)
    return catalog


def test_a_list_is_taken_up_again_byte_for_byte_and_stale(storage: Storage) -> None:
    raw = [
        b'{ "name":"odd", "n":1.0 , "d":1,"d":2,"t":"\\u0000 \\ud83d\\ude00" }',
        '{"name":"näïve","description":"😀"}'.encode(),
    ]

    async def main() -> None:
        tools, problems = read_tools("a", raw)
        assert problems == []
        before = Listing(
            server="a",
            identity='["cmd"]',
            tools=tools,
            listed_at=1234.5,
            instructions="be\x00careful",
            protocol_version="2025-11-25",
            server_version="x 1",
        )
        await (await _restored(storage)).put(before)
        after = (await _restored(storage, a='["cmd"]')).snapshot.listings["a"]
        assert [tool.definition for tool in after.tools.values()] == raw
        assert after.stale and after.listed_at == 1234.5
        assert after.tools == before.tools
        assert (after.instructions, after.protocol_version, after.server_version) == (
            "be\x00careful",
            "2025-11-25",
            "x 1",
        )

    asyncio.run(main())


def test_a_list_of_another_identity_or_of_nobody_is_left_out(storage: Storage) -> None:
    async def main() -> None:
        first = await _restored(storage)
        await first.put(listing("a", "one", identity="old command"))
        await first.put(listing("gone", "one"))
        assert names(await _restored(storage, a="new command")) == []
        assert names(await _restored(storage, a="old command")) == ["a:one"]
        second = await _restored(storage, a="new command")
        await second.put(listing("a", "two", identity="new command"))
        assert names(await _restored(storage, a="old command")) == []
        assert names(await _restored(storage, a="new command")) == ["a:two"]

    asyncio.run(main())


def test_a_dropped_list_comes_back_with_its_server(storage: Storage) -> None:
    async def main() -> None:
        catalog = await _restored(storage)
        await catalog.put(listing("a", "one"))
        catalog.drop("a")
        assert names(catalog) == []
        assert names(await _restored(storage, a="x")) == ["a:one"]

    asyncio.run(main())


def test_changed_instructions_are_saved_though_no_tool_changed(storage: Storage) -> None:
    async def main() -> None:
        catalog = await _restored(storage)
        await catalog.put(listing("a", "one", instructions="old"))
        await catalog.put(listing("a", "one", instructions="new"))
        assert (await _restored(storage, a="x")).snapshot.listings["a"].instructions == "new"

    asyncio.run(main())


class Moody(ListingStore):
    """A store that counts its writes and fails while it is told to, as a locked database does."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.saved = 0
        self.broken = False

    def save(self, listing: Listing) -> None:
        if self.broken:
            raise OSError("database is locked")
        self.saved += 1
        super().save(listing)


def test_a_list_that_could_not_be_saved_is_in_force_and_saved_at_the_next_chance(storage: Storage) -> None:
    async def main() -> None:
        store = Moody(storage)
        catalog = Catalog(store)
        store.broken = True
        await catalog.put(listing("a", "one"))
        assert names(catalog) == ["a:one"]
        store.broken = False
        await catalog.put(listing("a", "one"))
        assert names(await _restored(storage, a="x")) == ["a:one"]

    asyncio.run(main())


def test_a_list_that_did_not_change_is_not_written_again(storage: Storage) -> None:
    async def main() -> None:
        store = Moody(storage)
        catalog = Catalog(store)
        for _ in range(3):
            await catalog.put(listing("a", "one"))
            catalog.mark_stale("a")
        assert store.saved == 1
        again = Moody(storage)
        catalog = Catalog(again)
        await catalog.restore({"a": "x"})
        await catalog.put(listing("a", "one"))
        assert again.saved == 0

    asyncio.run(main())


def test_a_row_that_cannot_be_read_costs_itself_only(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    from sqlalchemy import update

    from mcpproxy.catalog.tables import tool_lists

    async def main() -> None:
        catalog = await _restored(storage)
        await catalog.put(listing("a", "one"))
        await catalog.put(listing("b", "one"))
        with storage.write() as connection:
            connection.execute(update(tool_lists).where(tool_lists.c.server == "a").values(listing="{nonsense"))
        assert names(await _restored(storage, a="x", b="x")) == ["b:one"]
        assert "the stored tools of 'a' cannot be read" in caplog.text

    asyncio.run(main())


def test_many_servers_listing_at_once_are_all_saved(storage: Storage) -> None:
    async def main() -> None:
        catalog = await _restored(storage)
        await asyncio.gather(*(catalog.put(listing(f"s{number}", "one", "two")) for number in range(30)))
        again = await _restored(storage, **{f"s{number}": "x" for number in range(30)})
        assert len(again.snapshot.tools) == 60

    asyncio.run(main())
