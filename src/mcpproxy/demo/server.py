"""How does the notes box speak MCP? The official SDK's server on stdio, both protocol eras."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from mcpproxy import __version__
from mcpproxy.demo.notes import Notebox, NoteError
from mcpproxy.demo.tools import TOOLS, Call, run_tool

_INSTRUCTIONS = (
    "A notes box to try things out. Read with list_notes, search_notes and get_note; write with add_note, "
    "update_note and tag_note; delete with delete_note and clear_notes. Nothing outlives the server."
)

Context = ServerRequestContext[dict[str, Any], Any]


def build_server(box: Notebox) -> Server[dict[str, Any]]:
    """An MCP server over this box of notes."""
    return Server(
        "mcpproxy-demo",
        title="mcpproxy demo: a notes box",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=partial(_call_tool, box),
    )


async def serve() -> None:
    """Serve a fresh box of notes on stdin and stdout until stdin ends."""
    server = build_server(Notebox())
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[tool.definition for tool in TOOLS.values()])


async def _call_tool(box: Notebox, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:64]}")
    call = Call(box, context.session.report_progress)
    try:
        return await run_tool(tool, call, params.arguments or {})
    except msgspec.ValidationError as error:
        return _failed(f"Invalid arguments for {params.name}: {error}")
    except NoteError as error:
        return _failed(str(error))


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
