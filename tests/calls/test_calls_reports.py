"""Progress on its way to a client: the newest of it, whatever the upstream sends and however slowly it is read."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.agent.wire_client import connected
from tests.calls.proxy import running
from tests.faults.clients import bad
from tests.support.children import b64, run

from mcpproxy.calls.reports import MOST_BYTES, MOST_REPORTS, Reports

ODD = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"message":7}}\n'
GOOD = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}\n'
DONE = b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}\n'


def taken(reports: Reports) -> list[bytes]:
    """All that a client gets that begins to read when everything is over."""

    async def take() -> list[bytes]:
        reports.end()
        found = []
        while (report := await reports.get()) is not None:
            found.append(report)
        return found

    return asyncio.run(take())


def test_the_newest_reports_wait_and_the_oldest_are_forgotten() -> None:
    reports = Reports()
    for number in range(MOST_REPORTS + 5):
        reports.put(b"%d" % number)
    assert taken(reports) == [b"%d" % number for number in range(5, MOST_REPORTS + 5)]


def test_large_reports_wait_within_a_number_of_bytes() -> None:
    reports = Reports()
    for letter in (b"a", b"b", b"c"):
        reports.put(letter * (MOST_BYTES // 2))
    reports.put(b"x" * (MOST_BYTES + 1))
    assert [report[:1] for report in taken(reports)] == [b"b", b"c"]


def test_a_report_is_handed_over_when_it_comes() -> None:
    async def main() -> None:
        reports = Reports()
        waiting = asyncio.create_task(reports.get())
        await asyncio.sleep(0)
        reports.put(b"now")
        assert await waiting == b"now"
        reports.end()
        assert await reports.get() is None

    asyncio.run(main())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_report_that_is_none_costs_only_itself(tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture) -> None:
    said = json.dumps({"name": "bad:raw", "args": {"data": b64(ODD + GOOD + DONE)}})

    async def main() -> None:
        async with (
            running(tmp_path, [{"name": "bad", **bad("raw")}]) as proxy,
            connected(proxy.mcp, era=era, lane=False) as client,
        ):
            answer = await client.call("call_tool_read", said, progress="mine")
            reports = [json.loads(message)["params"] for message in answer.before if b"progress" in message]
            assert [report["progress"] for report in reports] == [1]
            assert answer.decoded["result"]["content"] == []

    run(main())
    assert not [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
