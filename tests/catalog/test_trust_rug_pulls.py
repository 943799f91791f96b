"""Are the rug pulls of the shared data held, and is what only looks like one left alone?"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.catalog.trust_desk import Desk, listing

from mcpproxy.catalog.diff import is_rewording
from mcpproxy.storage.engine import open_storage

FOLDER = Path("/work/shared/data/security")


def pairs() -> list[dict[str, Any]]:
    files = [FOLDER / "rug_pull_synthetic.jsonl", FOLDER / "rug_pull_pairs.jsonl"]
    return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines() if line]


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared security data is not here")
def test_every_change_waits_and_a_new_order_of_keys_is_none(tmp_path: Path) -> None:
    storage = open_storage("sqlite", tmp_path)

    async def main() -> None:
        desk = Desk(storage)
        for number, pair in enumerate(pairs()):
            server = f"s{number}"
            await desk.catalog.put(listing(pair["before"], server=server))
            changes = await desk.catalog.put(listing(pair["after"], server=server))
            name = f"{server}:{pair['before']['name']}"
            if pair.get("expect") == "unchanged":
                assert name in desk.catalog.snapshot.tools and changes == ()
            else:
                assert desk.waiting[name] == "changed" and name not in desk.catalog.snapshot.tools

    asyncio.run(main())
    storage.close()


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared security data is not here")
def test_a_scan_lets_no_malicious_change_in_by_itself(tmp_path: Path) -> None:
    storage = open_storage("sqlite", tmp_path)

    async def main() -> None:
        for number, pair in enumerate(pairs()):
            server = f"s{number}"
            desk = Desk(storage, "scan")
            await desk.catalog.put(listing(pair["before"], server=server))
            name = f"{server}:{pair['before']['name']}"
            assert name in desk.catalog.snapshot.tools, "what was there before is harmless"
            await desk.catalog.put(listing(pair["after"], server=server))
            if pair["label"] == "malicious":
                assert desk.waiting[name] == "changed"
                waiting = desk.catalog.snapshot.waiting[name]
                assert waiting.findings or not is_rewording(waiting.differences)

    asyncio.run(main())
    storage.close()
