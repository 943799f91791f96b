"""`/events`: nothing is missed and nothing comes twice, whenever a client comes and goes."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.api.serving import PREFIX, Rest, serving
from tests.calls.proxy import KEY, echo

from mcpproxy.access.browser import COOKIE
from mcpproxy.api import events, stream

Event = dict[str, Any]


@contextlib.contextmanager
def listening(rest: Rest, after: str | None = None, **headers: str) -> Iterator[Iterator[Event]]:
    """The events of one stream, the first of them `ready`."""
    sent = {"X-API-Key": KEY, **({"Last-Event-ID": after} if after is not None else {}), **headers}
    with (
        httpx2.Client(timeout=20, trust_env=False) as client,
        client.stream("GET", f"{rest.url}{PREFIX}/events", headers=sent) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[Event]:
    event: Event = {}
    for line in lines:
        if line.startswith(":"):
            yield {"comment": line[1:].strip()}
        elif line:
            name, _, value = line.partition(": ")
            event[name] = json.loads(value) if name == "data" else value
        elif event:
            yield event
            event = {}


def call(rest: Rest, named: str) -> None:
    rest.post("tools/call", {"name": "echo:reads", "variant": "read"}, headers={"X-Request-Id": named})


def test_a_record_comes_as_it_is_committed(rest: Rest) -> None:
    with listening(rest) as found:
        ready = next(found)
        assert (ready["event"], ready["retry"]) == ("ready", str(events.RETRY_MS))
        call(rest, "live-1")
        event = next(found)
    assert event["event"] == "activity"
    assert event["data"]["request_id"] == "live-1"
    assert event["id"] == event["data"]["id"]
    assert event["data"] == rest.get(f"activity/{event['id']}")


def test_a_client_that_comes_back_goes_on_where_it_was(rest: Rest) -> None:
    with listening(rest) as found:
        next(found)
        call(rest, "resume-1")
        last = next(found)["id"]
    for number in range(2, 250):  # more than is remembered
        call(rest, f"resume-{number}")
    with listening(rest, after=last) as found:
        assert next(found)["id"] == last
        got = [next(found)["data"]["request_id"] for _ in range(2, 250)]
    assert got == [f"resume-{number}" for number in range(2, 250)]


def test_a_client_that_is_lost_before_the_first_event_misses_nothing(rest: Rest) -> None:
    with listening(rest) as found:
        began = next(found)["id"]
    call(rest, "early-1")
    with listening(rest, after=began) as found:
        next(found)
        assert next(found)["data"]["request_id"] == "early-1"


def test_a_client_whose_last_event_is_gone_is_told(rest: Rest) -> None:
    with listening(rest, after="01ARZ3NDEKTSV4RRFFQ69G5FAV") as found:
        next(found)
        event = next(found)
    assert (event["event"], event["data"]) == ("skipped", {"after": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})


@pytest.mark.parametrize("after", ["x", "0", "01arz3ndektsv4rrffq69g5fav", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"])
def test_a_last_event_id_that_is_none_is_422(rest: Rest, after: str) -> None:
    error = rest.error("GET", "events", 422, headers={"Last-Event-ID": after})
    assert error["details"]["fields"][0]["field"] == "Last-Event-ID"


def test_a_quiet_stream_has_a_heartbeat(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.05)
    with listening(rest) as found:
        next(found)
        assert next(found) == {"comment": "still here"}


def test_a_stream_takes_a_turn_and_gives_it_back(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_streams() -> float:
        line = next(x for x in rest.ask("GET", "/metrics").text.splitlines() if x.startswith("mcpproxy_event_streams "))
        return float(line.split()[1])

    _wait_for(lambda: open_streams() == 0)
    with listening(rest) as found:
        next(found)
        assert open_streams() == 1
    _wait_for(lambda: open_streams() == 0)
    rest.ask("HEAD", "events")
    assert open_streams() == 0


def test_more_streams_than_there_are_turns_are_429(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    door: Any = rest.proxy.app._api
    monkeypatch.setattr(door._app.state.turns.streams, "_most", 1)
    with listening(rest) as found:
        next(found)
        answer = rest.ask("GET", "events")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "30")
        assert answer.json()["error"]["code"] == "BUSY"


def test_a_client_that_does_not_read_is_cut_off(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "STALLED_SECONDS", 0.2)
    text = json.dumps({"content": [{"type": "text", "text": "x" * 60_000}]})
    where = urlsplit(rest.url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((where.hostname, where.port))
        connection.sendall(f"GET {PREFIX}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {KEY}\r\n\r\n".encode())
        streams = "mcpproxy_event_streams 1.0"
        _wait_for(lambda: streams in rest.ask("GET", "/metrics").text)
        for _ in range(100):
            body = {"name": "echo:raw", "variant": "read", "arguments": {"result": text}}
            rest.post("tools/call", body)
            if streams not in rest.ask("GET", "/metrics").text:
                break
        _wait_for(lambda: streams not in rest.ask("GET", "/metrics").text)


def test_a_stream_ends_with_the_key_that_opened_it(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.05)
    new = "another-key-" + "0" * 40
    with listening(rest) as found:
        next(found)
        rest.patch("config", {"api_key": new})
        try:
            assert list(found)[-1].get("event") != "ready"  # it ends
        finally:
            rest.patch("config", {"api_key": KEY}, key=new)


def test_a_browser_listens_with_its_cookie(rest: Rest) -> None:
    async def log_in() -> str:
        return rest.proxy.app.browsers.open().secret

    cookie = f"{COOKIE}={rest.run(log_in())}"
    with (
        httpx2.Client(timeout=20, trust_env=False) as client,
        client.stream("GET", f"{rest.url}{PREFIX}/events", headers={"Cookie": cookie}) as answer,
    ):
        assert next(_events(answer.iter_lines()))["event"] == "ready"


def test_a_stream_ends_cleanly_when_the_proxy_stops(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("stop") / "data", [echo()]) as rest:

        async def stop() -> None:
            rest.proxy.app.stopping.set()

        with listening(rest) as found:
            next(found)
            rest.run(stop())
            list(found)  # ends, and not in the middle of a chunk


def _wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
