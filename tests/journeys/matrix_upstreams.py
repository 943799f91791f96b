"""Servers of both eras over every transport, each of which can do the same few things and tells what it heard."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mcp.server.mcpserver import Context, MCPServer
from tests.journeys import npm
from tests.journeys.support import Spec
from tests.support.children import command
from tests.support.http_servers import in_a_thread

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
REFUSAL = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}


class Asked(NamedTuple):
    """A tool and its arguments."""

    tool: str
    args: dict[str, Any]


class House(NamedTuple):
    """One upstream, as the matrix sees it."""

    era: str
    transport: str
    entry: Callable[[Path], Spec]
    """Its configuration for a proxy with this home."""
    tools: set[str]
    echo: Asked
    echoed: str
    steps: Asked
    reports: list[int]
    hang: Asked | None = None
    begun: Callable[[Path], int] = lambda home: 0
    """How many calls of `hang` it has heard of, from the proxy with this home."""
    given_up: Callable[[Path], int] = lambda home: 0
    """How many of them it was told to give up."""
    grow: Callable[[str], Asked | None] = lambda name: None
    """A call that makes it list one more tool, of this name."""


# Over stdio: a script that needs only the standard library.

_PLAIN = {"inputSchema": {"type": "object"}}
_SCRIPTED = ("echo", "progress", "never", "change")


def _scripted(era: str) -> House:
    def tool(name: str) -> dict[str, Any]:
        return {"name": name, "description": f"To {name} what the {era} child says.", **_PLAIN}

    def heard(home: Path) -> Path:
        return home / f"{era}.heard"

    def entry(home: Path) -> Spec:
        pages = [[tool(name) for name in _SCRIPTED]]
        program, *rest = command(era="modern" if era == MODERN else "handshake", pages=pages, record=str(heard(home)))
        return {"command": program, "args": rest}

    def count(home: Path, sign: str) -> int:
        return heard(home).read_text().count(sign) if heard(home).exists() else 0

    return House(
        era=era,
        transport="stdio",
        entry=entry,
        tools=set(_SCRIPTED),
        echo=Asked("echo", {"word": "Grüße"}),
        echoed="Grüße",
        steps=Asked("progress", {"count": 3, "every": 0.05}),
        reports=[0, 1, 2],
        hang=Asked("never", {}),
        begun=lambda home: count(home, '"name":"never"'),
        given_up=lambda home: count(home, "notifications/cancelled"),
        grow=lambda name: Asked("change", {"pages": [[tool(one) for one in (*_SCRIPTED, name)]]}),
    )


# Over HTTP and SSE: the official SDK's server.


class Official:
    """A server with a list of tools that grows when asked, and notes on what became of its calls."""

    def __init__(self, era: str, transport: str) -> None:
        self.era, self.transport = era, transport
        self.begun = self.given_up = 0
        self.server = MCPServer("official", version="3")
        for tool in (self.echo, self.steps, self.hang, self.grow):
            self.server.add_tool(tool, description=f"To {tool.__name__} what the {era} {transport} house says.")

    def echo(self, word: str) -> dict[str, str]:
        return {"word": word}

    async def steps(self, ctx: Context) -> str:
        for step in (1, 2, 3):
            await ctx.report_progress(step, 3, "on it")
            await asyncio.sleep(0.05)
        return "done"

    async def hang(self) -> str:
        self.begun += 1
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return "too late"

    async def grow(self, name: str, ctx: Context) -> str:
        self.server.add_tool(self.echo, name=name, description=f"To {name} what the house says.")
        await ctx.notify_tools_changed()
        if self.era == LEGACY:
            await ctx.session.send_tool_list_changed()
        return "grown"

    @contextlib.contextmanager
    def house(self) -> Iterator[House]:
        """The server on a port of its own, for as long as the block lasts."""
        application: Any = self.server.sse_app() if self.transport == "sse" else self.server.streamable_http_app()
        with in_a_thread(_of_the_handshake_era(application) if self.era == LEGACY else application) as origin:
            url = f"{origin}/{'sse' if self.transport == 'sse' else 'mcp'}"
            yield House(
                era=self.era,
                transport=self.transport,
                entry=lambda home: {"url": url, "protocol": self.transport},
                tools={"echo", "steps", "hang", "grow"},
                echo=Asked("echo", {"word": "Grüße"}),
                echoed="Grüße",
                steps=Asked("steps", {}),
                reports=[1, 2, 3],
                hang=Asked("hang", {}),
                begun=lambda home: self.begun,
                given_up=lambda home: self.given_up,
                grow=lambda name: Asked("grow", {"name": name}),
            )


def _of_the_handshake_era(application: Any) -> Any:
    """The same server without the era that it speaks besides."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version") != MODERN.encode():
            await application(scope, receive, send)
            return
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 400, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(REFUSAL).encode()})

    return serve


# From npm: a server that we did not write.

EVERYTHING = House(
    era=LEGACY,
    transport="npm stdio",
    entry=lambda home: npm.stdio("server-everything", "stdio"),
    tools={"echo", "get-sum", "trigger-long-running-operation"},
    echo=Asked("echo", {"message": "Grüße"}),
    echoed="Grüße",
    steps=Asked("trigger-long-running-operation", {"duration": 0.3, "steps": 3}),
    reports=[1, 2, 3],
)

ABSENT = {
    (MODERN, "sse", "*"): "2026-07-28 has no transport of events beside POST",
    (MODERN, "npm stdio", "*"): "no server on npm speaks 2026-07-28 yet",
    (LEGACY, "npm stdio", "cancel"): "server-everything tells nobody that a call was given up",
    (LEGACY, "npm stdio", "list_changed"): "server-everything changes its list only when it starts",
}
"""The cells of the matrix that cannot be, and why."""


@contextlib.contextmanager
def houses() -> Iterator[dict[str, House]]:
    """Every upstream of the matrix, by the name that it has in the configuration."""
    with contextlib.ExitStack() as stack:
        found = {
            "old_child": _scripted(LEGACY),
            "new_child": _scripted(MODERN),
            "old_http": stack.enter_context(Official(LEGACY, "http").house()),
            "new_http": stack.enter_context(Official(MODERN, "http").house()),
            "old_sse": stack.enter_context(Official(LEGACY, "sse").house()),
        }
        if npm.MODULES.exists():
            found["everything"] = EVERYTHING
        yield found
