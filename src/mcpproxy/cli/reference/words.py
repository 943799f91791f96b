"""What does the shell need to know to complete a command line? The commands as one plain value, quick to load."""

from __future__ import annotations

import pprint
from typing import Any

from mcpproxy.cli.options import COMMON
from mcpproxy.cli.reference.tree import Command

_HEAD = '''"""Which words can follow which? Made from the commands: python -m mcpproxy.cli.reference"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORDS: dict[str, Any] = '''


def words_module(root: Command) -> str:
    """The module that completion reads."""
    tree = _tree(root)
    tree["options"] = {name: (value, text) for name, value, text in _common()} | tree["options"]
    return _HEAD + pprint.pformat(tree, width=110, sort_dicts=False) + "\n"


def _tree(command: Command) -> dict[str, Any]:
    options = {
        name: (parameter.value, _short(parameter.help))
        for parameter in command.parameters
        if parameter.is_option
        for name in parameter.names
    }
    arguments = [parameter.value for parameter in command.parameters if not parameter.is_option]
    tree: dict[str, Any] = {"help": _short(command.summary), "options": options, "arguments": arguments}
    if command.commands:
        tree["commands"] = {inner.path[-1]: _tree(inner) for inner in command.commands}
    return tree


def _common() -> list[tuple[str, str, str]]:
    found = []
    for option, text in COMMON:
        names, _, value = option.rpartition(" ") if " " in option and not option.startswith("-o") else (option, "", "")
        if option.startswith("-o"):
            names, value = "-o, --output", "table|json|yaml"
        found += [(name.strip(), value, _short(text)) for name in names.split(",")]
    return found


def _short(text: str) -> str:
    return text.split(". ", maxsplit=1)[0].rstrip(".")
