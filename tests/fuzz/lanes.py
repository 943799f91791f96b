"""One proxy that is asked the same twice: with its lane, and by the SDK alone."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.api.serving import Rest, serving
from tests.fuzz.heads import CLOSED_SESSION, OTHER_SESSION, SESSION, Head
from tests.fuzz.raw_http import Answer, RawHttp

from mcpproxy.activity.filters import parse_filter
from mcpproxy.activity.query import list_records
from mcpproxy.agent.lane import Arrived, Lane, Taken
from mcpproxy.agent.sessions import Session

LINE = {"name": "echo", "command": sys.executable, "args": [str(Path(__file__).with_name("line_server.py"))]}
PLAIN: Head = [(b"Content-Type", b"application/json"), (b"Accept", b"application/json, text/event-stream")]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}},
}


class Posted(NamedTuple):
    """One request."""

    head: Head
    body: bytes


class Recorded(NamedTuple):
    """What of a record must not depend on the lane."""

    type: str
    status: str
    server_name: str | None
    tool_name: str | None
    error_message: str | None
    arguments: bytes
    session_id: str | None
    client_name: str | None
    metadata: bytes


class Lanes:
    """A proxy that is asked with its lane and without."""

    def __init__(self, rest: Rest, token: str) -> None:
        self._rest = rest
        self._http = RawHttp(rest.url)
        self._names = (f"fuzz-{number}" for number in itertools.count())
        self.token = (b"Authorization", b"Bearer " + token.encode())
        self._ids: dict[bytes, bytes] = {}
        self._ids |= {SESSION: self._open(), OTHER_SESSION: self._open(self.token)}
        self.open_and_close()
        self.taken = 0
        """How many requests the lane took."""

    def _open(self, *more: tuple[bytes, bytes]) -> bytes:
        opened = self.post([*PLAIN, *more], json.dumps(INITIALIZE).encode())
        assert opened.session is not None
        return opened.session.encode()

    def open_and_close(self) -> None:
        """Have another session that is closed."""
        self._ids[CLOSED_SESSION] = self._open()
        closed = {"Mcp-Session-Id": self._ids[CLOSED_SESSION].decode()}
        assert self._rest.ask("DELETE", "/mcp", key=None, headers=closed).status_code == 200

    def post(self, head: Head, body: bytes) -> Answer:
        """Post something, whichever lane takes it."""
        return self._http.post("/mcp", [(name, self._filled(value)) for name, value in head], body)

    def _filled(self, value: bytes) -> bytes:
        for mark, session in self._ids.items():
            value = value.replace(mark, session)
        return value

    def ask(self, posted: Posted, *, lane: bool) -> tuple[Answer, list[Recorded]]:
        """The answer, and what is on record about it."""
        name = next(self._names)
        Lane.read = _counting(self) if lane else _never  # type: ignore[method-assign]
        try:
            answer = self.post([(b"X-Request-Id", name.encode()), *posted.head], posted.body)
        finally:
            Lane.read = _READ  # type: ignore[method-assign]
        return answer, self._records(name)

    def _records(self, request_id: str) -> list[Recorded]:
        found = list_records(self._rest.proxy.app.storage, parse_filter({"request_id": request_id})).activities
        return sorted(
            (
                Recorded(
                    one.type,
                    one.status,
                    one.server_name,
                    one.tool_name,
                    one.error_message,
                    bytes(one.arguments),
                    one.session_id,
                    one.client_name,
                    bytes(one.metadata),
                )
                for one in found
            ),
            key=repr,
        )

    def sessions(self) -> list[Session]:
        """The sessions that the proxy knows of."""
        return list(self._rest.proxy.app.agent.http.sessions)


_READ = Lane.read


def _never(self: Lane, arrived: Arrived) -> None:
    return None


def _counting(lanes: Lanes) -> Any:
    def counted(self: Lane, arrived: Arrived) -> Taken | None:
        taken = _READ(self, arrived)
        lanes.taken += taken is not None
        return taken

    return counted


@contextlib.contextmanager
def fuzzed(home: Path, **settings: Any) -> Iterator[Lanes]:
    """A proxy to be asked, for as long as the block lasts."""
    with serving(home / "home", [LINE], max_sessions=200, tool_response_limit=0, **settings) as rest:
        yield Lanes(rest, rest.post("tokens", {"name": "other"}, status=201)["token"])


def verdict(answer: Answer) -> Any:
    """What an answer says, without what differs from call to call."""
    return answer.status, answer.session is not None, [_said(message) for message in answer.messages]


def _said(message: bytes) -> Any:
    # Our own numbers towards the upstream stand in what `echo:line` gives back, and each request has another name.
    text = re.sub(rb'\\"(id|progressToken)\\":\d+', rb'\\"\1\\":0', message)
    text = re.sub(rb'"request_id":"fuzz-\d+"', b'"request_id":"fuzz"', text)
    try:
        # Numbers stay as they are written: 1 is not 1.0 here.
        return json.loads(text, parse_int=lambda raw: f"int {raw}", parse_float=lambda raw: f"float {raw}")
    except (ValueError, RecursionError):
        return text
