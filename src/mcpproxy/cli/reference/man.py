"""How does the command line look in `man mcpproxy`?"""

from __future__ import annotations

import mcpproxy
from mcpproxy.cli.options import COMMON
from mcpproxy.cli.reference.markdown import EXIT_CODES
from mcpproxy.cli.reference.tree import Command, Parameter, every

_ABOUT = (
    "mcpproxy is one MCP endpoint in front of many MCP servers. Agents find tools by searching, declare what they "
    "mean to do, get results that were checked, and everything is on record.",
    "Commands talk to the running daemon, by the unix socket in the data directory or at its address with the API "
    "key. Where none runs, call, tools, upstream and most of activity work on their own.",
)
_FILES = (
    ("~/.mcpproxy/mcp_config.json", "The configuration."),
    ("~/.mcpproxy/mcpproxy.db", "The database: records, tool lists, tokens."),
    ("~/.mcpproxy/mcpproxy.sock", "Where the running daemon listens for these commands."),
)
_ENVIRONMENT = (
    ("MCPPROXY_CONFIG", "The configuration file, where --config is not given."),
    ("MCPPROXY_DATA", "The data directory, where --data-dir is not given."),
    ("MCPPROXY_API_KEY", "Stands in for api_key in the configuration."),
    ("NO_COLOR", "Where it is set, nothing is coloured."),
)


def man_page(root: Command) -> str:
    """The whole page, in the man macros."""
    lines = [
        f'.TH MCPPROXY 1 "" "mcpproxy {mcpproxy.__version__}" "User Commands"',
        ".SH NAME",
        f"mcpproxy \\- {_text(root.summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B mcpproxy",
        "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]...",
        ".SH DESCRIPTION",
    ]
    for text in _ABOUT:
        lines += [_text(text), ".PP"]
    lines.pop()
    lines += [".SH OPTIONS", "Every command takes these, before or after its name.", *_table(COMMON, bold=True)]
    lines.append(".SH COMMANDS")
    for command in every(root):
        if command.path and not command.commands:
            lines += _command(command)
    lines += [".SH EXIT STATUS", *_table(tuple((str(code), f"{text}.") for code, text in EXIT_CODES), bold=True)]
    lines += [".SH ENVIRONMENT", *_table(_ENVIRONMENT, bold=True), ".SH FILES", *_table(_FILES, bold=False)]
    return "\n".join(lines) + "\n"


def _command(command: Command) -> list[str]:
    lines = [f".SS {_text(command.usage)}"]
    for number, part in enumerate(command.text.split("\n\n")):
        lines += [*([".PP"] if number else []), _text(part)]
    lines += _table(tuple(_shown(parameter) for parameter in command.parameters), bold=True)
    if command.examples:
        lines += [".PP", "Examples:", ".PP", ".nf", ".RS 4", *(_text(line) for line in command.examples), ".RE", ".fi"]
    return lines


def _shown(parameter: Parameter) -> tuple[str, str]:
    names = ", ".join(parameter.names) if parameter.is_option else ""
    default = f" Default: {parameter.default}." if parameter.default else ""
    return " ".join(part for part in (names, parameter.value) if part), parameter.help + default


def _table(rows: tuple[tuple[str, str], ...], *, bold: bool) -> list[str]:
    font = "B" if bold else "I"
    return [line for name, text in rows for line in (".TP", f"\\f{font}{_text(name)}\\fR", _text(text))]


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
