"""What can an agent do here? The built-in tools, served over HTTP and stdio by one dispatcher."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from mcpproxy.agent import tools
from mcpproxy.agent.arguments import BadArguments, read_call
from mcpproxy.agent.descriptions import REMOVED_CALL_TOOL, built_in_tools, management_tools
from mcpproxy.agent.http import HttpFace, incoming_of
from mcpproxy.agent.lane import Lane
from mcpproxy.agent.manage import ChangeConfig, quarantine_security, upstream_servers
from mcpproxy.agent.retrieve import retrieve_tools
from mcpproxy.agent.sdk import AgentServer, Incoming, Placeholders, UnknownTool
from mcpproxy.agent.stdio import StdioFace, StdioIncoming
from mcpproxy.calls.after import owner_of
from mcpproxy.calls.model import Asked, Call, Caller
from mcpproxy.policy.operations import OPERATION_OF
from mcpproxy.policy.quoting import quoted_name
from mcpproxy.policy.verdict import Refusal

if TYPE_CHECKING:
    from mcpproxy.access.identify import Gate
    from mcpproxy.agent.peek import Carried
    from mcpproxy.calls.house import House
    from mcpproxy.calls.pipeline import Pipeline
    from mcpproxy.catalog.listing import Listing
    from mcpproxy.config.models import Config


_TELL_AFTER = 1.0


class AgentFace:
    """Everything that agents see."""

    def __init__(
        self,
        *,
        settings: Callable[[], Config],
        change_config: ChangeConfig,
        house: House,
        pipeline: Pipeline,
        gate: Gate,
    ) -> None:
        self._settings = settings
        self._change_config = change_config
        self._house = house
        self._pipeline = pipeline
        self._placeholders = Placeholders()
        self._server = AgentServer(
            list_tools=self.list_tools,
            dispatch=self.dispatch,
            placeholders=self._placeholders,
            incoming=lambda ctx: _incoming(ctx.request),
        )
        self._lane = Lane(self.dispatch)
        self.http = HttpFace(
            server=self._server,
            lane=self._lane,
            placeholders=self._placeholders,
            gate=gate,
            settings=settings,
            auth_required=lambda: settings().mcp_auth_required,
        )

        self._named: frozenset[str] = frozenset()
        self._telling: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for as long as the block lasts."""
        self._house.catalog.watch(self._on_listed)
        async with self.http.running():
            try:
                yield
            finally:
                if self._telling is not None:
                    self._telling.cancel()

    def _on_listed(self, listing: Listing | None, server: str) -> None:
        """The description of retrieve_tools names the servers: when others are there, clients should read it again."""
        named = frozenset(self._house.catalog.snapshot.listings)
        if named == self._named:
            return
        self._named = named
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_soon())

    async def _tell_soon(self) -> None:
        await asyncio.sleep(_TELL_AFTER)  # servers come in bursts; one word serves them all
        await self._server.tools_changed()

    async def serve_stdio(self) -> None:
        """Serve the one agent on stdin and stdout, until it hangs up."""
        await StdioFace(self._server, self._lane, self._placeholders, self._max_request_bytes).serve()

    def _max_request_bytes(self) -> int:
        return self._settings().max_request_bytes

    def list_tools(self, caller: Caller) -> list[dict[str, Any]]:
        """What `tools/list` shows this caller."""
        listings = self._house.catalog.snapshot.listings
        tools = built_in_tools(self._settings(), [name for name in listings if caller.scope.sees_server(name)])
        return [*tools, *management_tools()] if caller.admin else tools

    async def dispatch(
        self,
        name: str,
        arguments: bytes,
        caller: Caller,
        request_id: str,
        on_progress: Callable[[bytes], None] | None,
        *,
        carried: Carried | None = None,
    ) -> bytes:
        """Run a built-in tool and return its raw result."""
        operation = OPERATION_OF.get(name)
        if operation is not None:
            try:
                asked = read_call(arguments)
            except BadArguments:
                asked = Asked()
            call = Call(
                operation, asked, caller, request_id=request_id, config=self._settings(), on_progress=on_progress
            )
            if carried is not None and self._pipeline.tracing is not None:
                call.parent = self._pipeline.tracing.parent_of(*carried)
            return (await self._pipeline.run(call)).result
        return await self._own(name, arguments, caller, request_id)

    async def _own(self, name: str, arguments: bytes, caller: Caller, request_id: str) -> bytes:
        started = time.perf_counter()
        config = self._settings()
        answer: Any
        try:
            match name:
                case "retrieve_tools":
                    answer = await retrieve_tools(self._house, config, caller, arguments)
                case "describe_tool":
                    answer = tools.describe_tool(self._house, config, caller, arguments)
                case "read_cache":
                    answer = tools.read_cache(self._house, config, owner_of(caller), arguments)
                case "upstream_servers" if caller.admin:
                    answer = await upstream_servers(self._house, self._change_config, arguments)
                case "quarantine_security" if caller.admin:
                    answer = await quarantine_security(self._house, self._change_config, arguments)
                case "call_tool":
                    raise UnknownTool(REMOVED_CALL_TOOL)
                case _:
                    raise UnknownTool(f"Unknown tool: {quoted_name(name)}")
        except BadArguments as error:
            answer = Refusal("INVALID_ARGUMENTS", str(error))
        return await tools.recorded(
            self._house, caller, name, request_id=request_id, arguments=arguments, started=started, answer=answer
        )

    async def config_changed(self, before: Config, after: Config) -> None:
        """Tell clients where the settings change what the tools look like."""
        if built_in_tools(before, ()) != built_in_tools(after, ()):
            await self._server.tools_changed()


def _incoming(request: Any) -> Incoming:
    return request if isinstance(request, StdioIncoming) else incoming_of(request)
