"""What would the lane cost alone? The agent's lane and the wire of mcpproxy, with nothing in between.

For the bench only: no policy, no validation, no record. A call goes from the very lane that agents use straight to
the channel, so what mcpproxy takes longer than this is what its stages cost. `bare_lane.py PORT UPSTREAM`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Any, cast

import msgspec
import uvloop
from msgspec import Raw, Struct

from mcpproxy.access.identify import Gate
from mcpproxy.agent.http import HttpFace, incoming_of
from mcpproxy.agent.lane import Lane
from mcpproxy.agent.peek import Carried
from mcpproxy.agent.sdk import AgentServer, Placeholders
from mcpproxy.calls.model import Caller
from mcpproxy.catalog.tool import Tool
from mcpproxy.config.models import Config, Server
from mcpproxy.listen import HostCheck, open_socket, serve_http
from mcpproxy.upstream.connection import Connection
from mcpproxy.upstream.handshake import Era, Link, connect
from mcpproxy.wire.reaper import Reaper

CONFIG = Config()
TOOL = Tool(server="bench", name="echo")


class _Asked(Struct):
    name: str
    args: Raw = Raw(b"{}")


_read = msgspec.json.Decoder(_Asked).decode


def face(connection: Connection) -> HttpFace:
    """The MCP face over HTTP, whose every call goes to the one upstream."""

    async def dispatch(
        name: str,
        arguments: bytes,
        caller: Caller,
        request_id: str,
        on_progress: Callable[[bytes], None] | None,
        *,
        carried: Carried | None = None,
    ) -> bytes:
        asked = _read(arguments)
        return await connection.call_tool(
            TOOL, bytes(asked.args), timeout=120.0, max_timeout=1800.0, on_progress=on_progress
        )

    placeholders = Placeholders()
    server = AgentServer(
        list_tools=lambda caller: [],
        dispatch=dispatch,
        placeholders=placeholders,
        incoming=lambda ctx: incoming_of(ctx.request),
    )
    return HttpFace(
        server=server,
        lane=Lane(dispatch),
        placeholders=placeholders,
        gate=Gate(lambda: CONFIG, cast(Any, None)),  # nobody brings a credential
        settings=lambda: CONFIG,
        auth_required=lambda: False,
    )


async def serve(port: int, upstream: Server) -> None:
    """Serve until we are told to stop."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    reaper = Reaper()
    link = Link(
        server=upstream,
        max_result_bytes=CONFIG.max_result_bytes,
        connect_timeout=30.0,
        on_spawn=lambda: None,
        on_stderr=lambda data: None,
        reaper=reaper,
        credentials=None,
        on_tools_changed=lambda: None,
        on_message=lambda text: None,
    )
    async with connect(link, Era()) as connection:
        agent = face(connection)
        async with agent.running():
            sockets = [open_socket(f"127.0.0.1:{port}")]
            await serve_http(HostCheck(agent, lambda: CONFIG), sockets, lambda: 0, stopping)
    reaper.stop()


def main() -> None:
    """Read the command line and serve."""
    upstream = msgspec.json.decode(sys.argv[2])
    uvloop.run(serve(int(sys.argv[1]), msgspec.convert({"name": "bench", **upstream}, Server)))


if __name__ == "__main__":
    main()
