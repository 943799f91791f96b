"""What can an agent do here? The built-in tools, served over HTTP and stdio by one dispatcher."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from mcpproxy.agent.descriptions import REMOVED_CALL_TOOL, built_in_tools
from mcpproxy.agent.http import HttpFace, incoming_of
from mcpproxy.agent.lane import Lane
from mcpproxy.agent.sdk import AgentServer, Incoming, Placeholders, UnknownTool
from mcpproxy.agent.stdio import StdioFace, StdioIncoming
from mcpproxy.calls.model import Caller
from mcpproxy.config.models import Config

if TYPE_CHECKING:
    from mcpproxy.access.identify import Gate
    from mcpproxy.catalog.catalog import Catalog
    from mcpproxy.upstream.pool import Pool


class AgentFace:
    """Everything that agents see."""

    def __init__(self, *, settings: Callable[[], Config], catalog: Catalog, pool: Pool, gate: Gate) -> None:
        self._settings = settings
        self._catalog = catalog
        self._pool = pool
        self._placeholders = Placeholders()
        self._server = AgentServer(
            list_tools=self.list_tools,
            dispatch=self.dispatch,
            placeholders=self._placeholders,
            incoming=lambda ctx: _incoming(ctx.request),
        )
        self.http = HttpFace(
            server=self._server,
            lane=Lane(self.dispatch),
            placeholders=self._placeholders,
            gate=gate,
            settings=settings,
            auth_required=lambda: settings().mcp_auth_required,
        )
        self.in_flight = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for as long as the block lasts."""
        async with self.http.running():
            yield

    async def serve_stdio(self) -> None:
        """Serve the one agent on stdin and stdout, until it hangs up."""
        await StdioFace(self._server, self._placeholders, lambda: self._settings().max_request_bytes).serve()

    def list_tools(self, caller: Caller) -> list[dict[str, Any]]:
        """What `tools/list` shows this caller."""
        servers = [name for name in self._catalog.snapshot.listings if caller.scope.sees_server(name)]
        return built_in_tools(self._settings(), servers)

    async def dispatch(
        self,
        name: str,
        arguments: bytes,
        caller: Caller,
        request_id: str,
        on_progress: Callable[[bytes], None] | None,
    ) -> bytes:
        """Run a built-in tool."""
        if name == "call_tool":
            raise UnknownTool(REMOVED_CALL_TOOL)
        raise UnknownTool(f"Unknown tool: {name[:200]}")

    async def config_changed(self, before: Config, after: Config) -> None:
        """Tell clients where the settings change what the tools look like."""
        if self._descriptions(before) != self._descriptions(after):
            await self._server.tools_changed()

    def _descriptions(self, config: Config) -> list[dict[str, Any]]:
        return built_in_tools(config, ())


def _incoming(request: Any) -> Incoming:
    return request if isinstance(request, StdioIncoming) else incoming_of(request)
