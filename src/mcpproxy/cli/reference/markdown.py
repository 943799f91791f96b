"""How does the command line look in docs/cli.md?"""

from __future__ import annotations

from mcpproxy.cli.options import COMMON
from mcpproxy.cli.reference.tree import Command, Parameter, every

EXIT_CODES = (
    (0, "all went well"),
    (1, "the operation failed or was refused"),
    (2, "the command line or a filter is wrong"),
    (3, "the database is locked or cannot be read"),
    (4, "the configuration is invalid"),
    (5, "no permission: a file, a directory, or the API key"),
    (6, "the port is in use"),
    (7, "the daemon is not reachable, and the command needs it"),
    (130, "interrupted with Ctrl-C"),
)

_HEAD = """# The command line

<!-- Made from the commands: python -m mcpproxy.cli.reference -->

`mcpproxy` talks to the running daemon: by the unix socket in the data directory, else at `listen` with the API key.
Where none runs, `call`, `tools`, `upstream` and most of `activity` work on their own, from the configuration and the
database.

On a terminal you get tables that fit its width, icons, and colours (none with `NO_COLOR`). In a pipe you get whole,
tab-separated lines, and `call` prints the raw result. `-o json` and `-o yaml` are for programs: stdout holds the answer
and nothing else, logs and remarks go to stderr. An error is one paragraph on stderr; with `-o json` it is
`{"code", "message", "hint"}`.

What servers and agents wrote is shown without control characters, escape sequences and markup.

## Options of every command

They may stand before or after the command.

| option | meaning |
|---|---|
"""


def markdown(root: Command) -> str:
    """The whole page."""
    parts = [_HEAD + "\n".join(f"| `{_cell(option)}` | {_cell(text)} |" for option, text in COMMON) + "\n"]
    codes = "\n".join(f"| {code} | {text} |" for code, text in EXIT_CODES)
    parts.append(f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n")
    parts.append("## Commands\n\n" + "\n".join(_line(command) for command in every(root) if command.path) + "\n")
    parts += [_section(command) for command in every(root) if command.path]
    return "\n".join(parts)


def _line(command: Command) -> str:
    indent = "  " * (len(command.path) - 1)
    return f"{indent}- [`{' '.join(command.path)}`](#{_anchor(command)}): {command.summary}"


def _anchor(command: Command) -> str:
    return command.name.replace(" ", "-")


def _section(command: Command) -> str:
    level = "##" if command.commands or len(command.path) == 1 else "###"
    lines = [f"{level} {command.name}", "", command.text, ""]
    if not command.commands:
        lines += ["```", command.usage, "```", ""]
    if command.parameters:
        lines += ["| | |", "|---|---|", *(_row(parameter) for parameter in command.parameters), ""]
    if command.examples:
        lines += ["```sh", *command.examples, "```", ""]
    return "\n".join(lines)


def _row(parameter: Parameter) -> str:
    names = ", ".join(parameter.names) if parameter.is_option else ""
    shown = " ".join(part for part in (names, parameter.value) if part)
    default = f" Default: `{parameter.default}`." if parameter.default else ""
    required = " Required." if parameter.required and parameter.is_option else ""
    return f"| `{_cell(shown)}` | {_cell(parameter.help)}{default}{required} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
