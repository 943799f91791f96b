"""Is the list of tools what the server says, all of it, and still there when the server is not?"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.children import bad_server, run, until
from tests.support.houses import house
from tests.upstream.quick_lives import quick_lists

from mcpproxy.config.models import Server
from mcpproxy.upstream import connection
from mcpproxy.upstream import server as life
from mcpproxy.upstream.server import State

__all__ = ["quick_lists"]


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_a_list_is_read_to_its_last_page(era: str) -> None:
    async def main() -> None:
        pages = [[tool(f"t{page}_{number}") for number in range(3)] for page in range(5)]
        async with house(bad_server("a", era=era, pages=[*pages, []])) as home:
            await home.ready()
            assert home.tools("a") == [entry["name"] for page in pages for entry in page]

    run(main())


def test_everything_about_a_tool_is_kept_byte_for_byte() -> None:
    definition = (
        '{"name":"odd", "description":"na\\u00efve", "annotations":{"readOnlyHint":true,"x":1.0},'
        ' "outputSchema":{"n":1e400,"d":1,"d":2}, "inputSchema": { "type" : "object" } ,"_meta":{"a":0.10}}'
    )

    async def main() -> None:
        async with house(bad_server("a", pages=[[definition]])) as home:
            await home.ready()
            found = home.catalog.snapshot.find("a:odd")
            assert found is not None
            assert found.definition == definition.encode()
            assert found.input_schema == b'{ "type" : "object" }'
            assert found.output_schema == b'{"n":1e400,"d":1,"d":2}'
            assert found.annotations == {"readOnlyHint": True, "x": 1.0}
            assert found.description == "naïve"

    run(main())


def test_one_bad_tool_costs_itself_only_and_is_named() -> None:
    page = [
        tool("good"),
        5,
        {"description": "no name"},
        tool(""),
        tool("bad\x00name"),
        tool("no_object", inputSchema=True),
        tool("huge", description="$HUGE"),
        '{"name":"cut","description":"cut in mid-emoji \\ud83d","inputSchema":{"type":"object"}}',
        tool("good", description="the second of that name"),
        tool("last"),
    ]

    async def main() -> None:
        async with house(bad_server("a", pages=[page])) as home:
            await home.ready()
            assert home.tools("a") == ["good", "last"]
            good = home.catalog.snapshot.find("a:good")
            assert good is not None and good.description == ""
            remarks = "\n".join(home.server("a").log.lines)
            for position in (2, 3, 4, 5, 6, 7, 8):
                assert f"tool {position} of 'a' is left out: " in remarks
            assert "tool 'good' of 'a' is listed twice; the first one counts" in remarks

    run(main())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"endless": "same"}, "its tool list never ends: the same page comes again"),
        ({"endless": "new"}, "its tool list has more than 20 pages"),
        ({"pages": [[tool(f"t{number}") for number in range(60)]] * 2}, "it lists more than 100 tools"),
    ],
)
def test_a_list_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], reason: str) -> None:
    monkeypatch.setattr(connection, "_MAX_PAGES", 20)
    monkeypatch.setattr(connection, "MAX_TOOLS", 100)

    async def main() -> None:
        async with house(bad_server("a", **options), bad_server("good")) as home:
            assert reason in await home.state("a", State.BACKING_OFF)
            await home.ready("good")
            assert home.tools("a") == []

    run(main())


def test_a_server_without_tools_is_not_asked_for_them() -> None:
    async def main() -> None:
        async with house(bad_server("a", capabilities={})) as home:
            await home.ready()
            assert home.tools("a") == []
            assert home.listings[-1].tools == {}

    run(main())


def test_a_changed_list_is_listed_again_for_that_server_alone() -> None:
    async def main() -> None:
        async with house(bad_server("a"), bad_server("b")) as home:
            await home.ready()
            pids = home.pid("a"), home.pid("b")
            await home.call("a", "change", pages=[[tool("new")]])
            await until(lambda: home.tools("a") == ["new"])
            assert home.tools("b") == ["echo"]
            assert [listing.server for listing in home.listings].count("b") == 1
            assert (home.pid("a"), home.pid("b")) == pids

    run(main())


def test_a_server_that_never_rests_is_asked_ever_less() -> None:
    async def main() -> None:
        async with house(bad_server("a")) as home:
            await home.ready()
            asked = asyncio.get_running_loop().time()
            while asyncio.get_running_loop().time() < asked + 2:
                await home.call("a", "notify", method="notifications/tools/list_changed")
            assert 2 < len(home.listings) < 9  # every 0.05 s would be about forty

    run(main())


def test_odd_notices_do_not_end_a_connection() -> None:
    odd: list[dict[str, Any]] = [
        {"method": "notifications/message", "more": {"params": {"level": "nonsense", "data": 1}}},
        {"method": "notifications/message", "more": {"params": {"level": "info", "data": {"a": [1]}}}},
        {"method": "notifications/message", "more": {"params": [1]}},
        {"method": "notifications/tools/list_changed", "more": {"params": {"_meta": 5}}},
        {"method": "notifications/nobody/knows"},
        {"method": "notifications/cancelled", "more": {"params": {"requestId": 1}}},
        {"method": "notifications/cancelled", "more": {"params": {"requestId": {}}}},
        {"method": "notifications/subscriptions/acknowledged", "more": {"params": {"notifications": 5}}},
    ]

    async def main() -> None:
        for era in ("handshake", "modern"):
            async with house(bad_server("a", era=era)) as home:
                await home.ready()
                for notice in odd:
                    await home.call("a", "notify", **notice)
                assert await home.call("a", "echo", x=1) == {"x": 1}
                assert home.states_of("a") == ["connecting", "ready"]
                if era == "handshake":
                    assert any("info: {'a': [1]}" in line for line in home.server("a").log.lines)

    run(main())


def test_the_last_known_list_survives_an_outage_marked_stale() -> None:
    async def main() -> None:
        async with house(bad_server("a", instructions="be careful")) as home:
            await home.ready()
            assert not home.stale("a")
            os.kill(home.pid("a"), signal.SIGKILL)
            await until(lambda: home.outages)
            assert home.outages == [("a", ["echo"], True)]
            await home.state("a", State.READY)
            assert not home.stale("a")

    run(main())


def test_the_last_known_list_survives_a_restart_marked_stale(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    script = "import os, sys; os.path.exists(sys.argv[1]) or sys.exit(7); os.execv(sys.executable, sys.argv[2:])"
    server = bad_server("a", instructions="be careful", pages=[[tool("one"), tool("two")]])
    server = Server(name="a", command=sys.executable, args=("-c", script, str(gate), sys.executable, *server.args))

    async def main() -> None:
        async with house(server, home=tmp_path) as home:
            await home.ready()
            listed = home.listings[-1]
        gate.unlink()
        async with house(server, home=tmp_path) as home:
            assert home.tools("a") == ["one", "two"]
            assert home.stale("a")
            restored = home.catalog.snapshot.listings["a"]
            assert restored.tools == listed.tools
            assert (restored.instructions, restored.server_version) == ("be careful", "bad 1")
            assert "code 7" in await home.state("a", State.BACKING_OFF)
            assert home.tools("a") == ["one", "two"]
            gate.touch()
            await home.state("a", State.READY)
            assert not home.stale("a")

    run(main())


def test_the_list_of_another_server_of_the_same_name_is_not_taken_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with house(bad_server("a"), home=tmp_path) as home:
            await home.ready()
        other = bad_server("a", hang_at_start=True)
        async with house(other, home=tmp_path) as home:
            assert home.tools("a") == []
        async with house(bad_server("a"), home=tmp_path) as home:
            assert home.tools("a") == ["echo"]

    run(main())


def test_a_secret_in_the_configuration_is_no_part_of_the_identity() -> None:
    plain = Server(name="a", command="x", args=("--key", "${env:KEY}"), env={"KEY": "1"})
    assert life.server_identity(plain) == json.dumps(["x", "--key", "${env:KEY}"], separators=(",", ":"))
    assert life.server_identity(Server(name="a", url="http://x/${env:KEY}")) == "http://x/${env:KEY}"
