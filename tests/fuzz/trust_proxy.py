"""A real proxy for the state machine: one server whose tools a test changes, and callers of every kind."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.api.serving import Rest, serving
from tests.fuzz.trust_model import OPERATIONS, Definition, Scope

from mcpproxy.activity.filters import parse_filter
from mcpproxy.activity.query import list_records
from mcpproxy.activity.record import decoded
from mcpproxy.upstream.server import State

SCRIPT = Path(__file__).with_name("shifty_server.py")
CALLERS = {
    "everybody": Scope(),
    "reader": Scope("*", ("read",)),
    "half": Scope("a*", OPERATIONS),
}
FACES = ("modern", "legacy", "rest")
ACCEPT = "application/json, text/event-stream"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "machine", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Call(NamedTuple):
    """One call to make."""

    face: str
    caller: str
    operation: str
    tool: str
    declared: dict[str, Any]


class Outcome(NamedTuple):
    """What a call came to, and what is on record of it."""

    code: str | None
    text: str
    records: list[tuple[str, str]]
    """Type and status."""
    operation: set[Any]
    """The operation types on record."""
    warned: bool
    """Whether the call's own record tells of a warning."""


def until(look: Callable[[], Any], what: str) -> None:
    """Wait for something that is bound to come."""
    deadline = time.monotonic() + 30
    while not look():
        assert time.monotonic() < deadline, f"it never happened: {what}"
        time.sleep(0.002)


class TrustProxy:
    """The proxy, and the one server that is looked at now."""

    def __init__(self, rest: Rest, home: Path) -> None:
        self.rest = rest
        self._home = home
        self._count = 0
        self._calls = 0
        self.name = ""
        self._tokens: dict[str, str | None] = {"everybody": None}
        for caller, scope in CALLERS.items():
            if caller != "everybody":
                body = {"name": caller, "tools": [scope.tools], "allow": list(scope.operations)}
                self._tokens[caller] = rest.post("tokens", body, status=201)["token"]

    # The server.

    def add(self, tools: dict[str, Definition], **entry: Any) -> None:
        """Put a server in the configuration that was never seen before."""
        self._count += 1
        self.name = f"shifty{self._count}"
        self.show(tools)
        arguments = ["-I", "-S", str(SCRIPT), str(self._file)]
        self.rest.post(
            "servers", {"name": self.name, "command": sys.executable, "args": arguments, **entry}, status=201
        )

    def remove(self) -> None:
        """Take it out again."""
        self.rest.delete(f"servers/{self.name}")

    @property
    def _file(self) -> Path:
        return self._home / f"{self.name}.json"

    def show(self, tools: dict[str, Definition]) -> None:
        """What the server lists from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps([definition.listed(name) for name, definition in tools.items()]))
        new.replace(self._file)

    @contextlib.contextmanager
    def unheard(self) -> Iterator[None]:
        """Let the server say nothing of changes for as long as the block lasts."""
        quiet = self._file.with_suffix(".quiet")
        quiet.touch()
        yield
        quiet.unlink()

    def settle(self, running: bool) -> None:
        """Wait until the proxy has taken up what the server lists, or has let go of it."""
        app = self.rest.proxy.app
        wanted = [json.dumps(tool).encode() for tool in json.loads(self._file.read_text())]

        def taken_up() -> bool:
            upstream, live = app.pool.get(self.name), app.catalog._live.get(self.name)
            if not running:
                return upstream is not None and upstream.state in (State.DISABLED, State.QUARANTINED)
            ready = upstream is not None and upstream.state is State.READY
            return ready and live is not None and [tool.definition for tool in live.tools.values()] == wanted

        until(taken_up, f"{self.name} is {'listed' if running else 'off'}")
        self.rest.run(self._judged())

    async def _judged(self) -> None:
        async with self.rest.proxy.app.catalog._deciding[self.name]:
            pass

    # The operator.

    def waiting(self) -> dict[str, dict[str, Any]]:
        """What waits of this server, by the tool's name."""
        found = self.rest.get("tools/waiting")["waiting"]
        return {one["name"].partition(":")[2]: one for one in found if one["server"] == self.name}

    def visible(self) -> set[str]:
        """What agents see of this server."""
        return {tool["name"].partition(":")[2] for tool in self.rest.get(f"servers/{self.name}/tools")["tools"]}

    def decide(self, decision: str, tool: str | None, version: str) -> int:
        """Approve or reject; gives the status."""
        name = self.name if tool is None else f"{self.name}:{tool}"
        return self.rest.ask("POST", f"tools/{decision}", json={"name": name, "version": version}).status_code

    def break_the_file(self) -> None:
        """Leave a configuration that does not load, until the proxy has seen it and the old one is back."""
        path, app = self.rest.proxy.path, self.rest.proxy.app
        good = path.read_text()
        path.write_text(good[:-20])
        self.rest.run(app._watch.look())
        assert app.config_error is not None
        path.write_text(good)
        self.rest.run(app._watch.look())
        assert app.config_error is None

    # The callers.

    def call(self, calls: list[Call]) -> list[Outcome]:
        """Make some calls, one after the other."""
        answers = [self._answer(call, f"{self.name}-{number}-{self._calls}") for number, call in enumerate(calls)]
        newest = list_records(self.rest.proxy.app.storage, parse_filter({}), limit=2 * len(calls) + 20).activities
        outcomes = []
        for number, (code, text) in enumerate(answers):
            found = [one for one in newest if one.request_id == f"{self.name}-{number}-{self._calls}"]
            about = {one.type: decoded(one.metadata) for one in found}
            kinds = {metadata["intent"]["operation_type"] for metadata in about.values()}
            warned = bool(about["tool_call"].get("warnings"))
            outcomes.append(Outcome(code, text, sorted((one.type, one.status) for one in found), kinds, warned))
        self._calls += 1
        return outcomes

    def _answer(self, call: Call, request_id: str) -> tuple[str | None, str]:
        token = self._tokens[call.caller]
        headers = {"X-Request-Id": request_id, "Accept": ACCEPT}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if call.face == "rest":
            return self._by_rest(headers, token, call)
        return self._by_mcp(headers, call)

    def _by_rest(self, headers: dict[str, str], token: str | None, call: Call) -> tuple[str | None, str]:
        name = f"{self.name}:{call.tool}"
        body = {"name": name, "variant": call.operation, "arguments": {}, **call.declared}
        key = {} if token is None else {"key": None}
        answer = self.rest.ask("POST", "tools/call", headers={**headers, "Accept": "*/*"}, json=body, **key).json()
        if answer["success"]:
            return None, answer["data"]["content"][0]["text"]
        return answer["error"]["code"], answer["error"]["message"]

    def _by_mcp(self, headers: dict[str, str], call: Call) -> tuple[str | None, str]:
        modern, tool = call.face == "modern", f"call_tool_{call.operation}"
        arguments = {"name": f"{self.name}:{call.tool}", **call.declared}
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if modern:
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}
            params["_meta"] = META
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = self.rest.ask("POST", "/mcp", key=None, headers=headers, json=body)
        assert answer.status_code == 200, answer.text
        said = answer.text if modern else answer.text.partition("data: ")[2]
        result = json.loads(said)["result"]
        refusal = (result.get("structuredContent") or {}).get("error") if result.get("isError") else None
        return refusal["code"] if refusal else None, result["content"][0]["text"]


@contextlib.contextmanager
def trust_proxy(home: Path) -> Iterator[TrustProxy]:
    """A proxy without servers, for as long as the block lasts."""
    with serving(home / "home") as rest:
        yield TrustProxy(rest, home)
