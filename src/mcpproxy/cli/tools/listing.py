"""How do tools look? One line each in a list; one on its own with everything it takes and gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.screen import Cell, Column

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen

_COLUMNS: Final = (Column("TOOL", gives=1), Column("CALL WITH"), Column("DESCRIPTION", gives=2))
_VARIANTS: Final = {"call_tool_read": "read", "call_tool_write": "write", "call_tool_destructive": "destructive"}
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def kind_of(tool: dict[str, Any]) -> Cell:
    """With which variant a tool is to be called."""
    cell = looks.intent(_VARIANTS.get(tool["call_with"]))
    return Cell(tool["call_with"], cell.shown, cell.style)


def print_tools(screen: Screen, tools: list[dict[str, Any]]) -> None:
    """Print tools as a table."""
    from mcpproxy.catalog.search.signature import first_sentence

    rows = [
        [
            Cell(tool["name"], style="bold"),
            kind_of(tool),
            Cell(" ".join(tool["description"].split()), first_sentence(tool["description"])),
        ]
        for tool in tools
    ]
    screen.rows(_COLUMNS, rows)
    if screen.pretty and not tools:
        screen.note("No tools yet. Add a server: mcpproxy upstream add NAME -- npx -y PACKAGE")


def print_tool(screen: Screen, tool: dict[str, Any]) -> None:
    """Print one tool, whole."""
    kind = kind_of(tool)
    variant = _VARIANTS[tool["call_with"]]
    screen.line((tool["name"], "bold"), f"  {tool['title']}" if tool.get("title") else "")
    screen.line("  call with    ", (tool["call_with"], kind.style))
    hints = [f"{hint}: {str(value).lower()}" for hint, value in tool["annotations"].items() if hint in _HINTS]
    screen.line("  hints        ", ", ".join(hints) or "none: the server says nothing about it")
    if tool["description"]:
        screen.write("")
        screen.line(tool["description"].strip())
    _print_parameters(screen, tool["inputSchema"])
    if tool.get("outputSchema"):
        _title(screen, "Gives")
        screen.line(f"  {_type(tool['outputSchema'])}")
    _title(screen, "Call it")
    screen.line(f"  mcpproxy call tool-{variant} {tool['name']}{_example(tool['inputSchema'])}")


def _print_parameters(screen: Screen, schema: dict[str, Any]) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    columns = (Column("PARAMETER"), Column("TYPE", gives=1), Column(""), Column("DESCRIPTION", gives=2))
    rows = []
    for name, value in properties.items():
        text = value.get("description") if isinstance(value, dict) else None
        mark = Cell("required", style="yellow") if name in (required or ()) else Cell("")
        about = " ".join(text.split()) if isinstance(text, str) else ""
        rows.append([Cell(name, style="cyan"), Cell(_type(value)), mark, Cell(about)])
    screen.write("")
    screen.rows(columns, rows)


def _type(schema: Any) -> str:
    """The type that a schema describes, as a signature writes it."""
    from mcpproxy.catalog.search.signature import signature_of

    written = signature_of({"properties": {"x": schema}, "required": ["x"]})
    return written.removeprefix("(x: ").removesuffix(")") if written.startswith("(x: ") else ""


def _example(schema: dict[str, Any]) -> str:
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    return "".join(f" {name}=…" for name in required or () if isinstance(name, str))


def _title(screen: Screen, text: str) -> None:
    screen.write("")
    screen.line((text, "bold"))
