"""Which commands, options and examples are there? Read from the typer application, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main
from msgspec import Struct

from mcpproxy.cli.commands import build
from mcpproxy.cli.examples import examples_in


class Parameter(Struct, frozen=True):
    """One option or argument."""

    names: tuple[str, ...]
    """The spellings of an option; of an argument its one name."""
    value: str
    """What stands for its value in help; empty for a switch."""
    help: str
    default: str = ""
    required: bool = False
    is_option: bool = True


class Command(Struct, frozen=True):
    """One command, or a group of them."""

    path: tuple[str, ...]
    summary: str
    text: str
    """All that its help says, paragraph by paragraph."""
    parameters: tuple[Parameter, ...] = ()
    examples: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()

    @property
    def name(self) -> str:
        """The whole name: `mcpproxy tools list`."""
        return " ".join(("mcpproxy", *self.path))

    @property
    def usage(self) -> str:
        """How it is typed."""
        words = [self.name]
        if self.commands:
            words.append("COMMAND")
        if any(parameter.is_option for parameter in self.parameters):
            words.append("[OPTIONS]")
        for parameter in self.parameters:
            if not parameter.is_option:
                value = parameter.value
                words.append(value if parameter.required or value.startswith("[") else f"[{value}]")
        return " ".join(words)


def root() -> Command:
    """The whole command line."""
    return _command((), typer.main.get_command(build()))


def every(command: Command) -> Iterator[Command]:
    """A command and all below it, in the order of help."""
    yield command
    for inner in command.commands:
        yield from every(inner)


def _command(path: tuple[str, ...], found: Any) -> Command:
    inner = {name: found.commands[name] for name in found.list_commands(None)} if hasattr(found, "commands") else {}
    text = (found.help or "").replace("\b\n", "").strip()
    return Command(
        path=path,
        summary=" ".join(text.split("\n\n")[0].split()),
        text="\n\n".join(" ".join(part.split()) for part in text.split("\n\n")),
        parameters=tuple(_parameter(each) for each in found.params if each.name != "help"),
        examples=tuple(examples_in(found.epilog)),
        commands=tuple(_command((*path, name), each) for name, each in inner.items() if not each.hidden),
    )


def _parameter(found: Any) -> Parameter:
    is_option = found.param_type_name == "option"
    is_switch = is_option and bool(getattr(found, "is_flag", False))
    default = found.default
    return Parameter(
        names=tuple(sorted(found.opts, key=lambda name: name.startswith("--"))) if is_option else (found.name,),
        value="" if is_switch else (found.metavar or found.name.upper()),
        help=found.help or "",
        default="" if is_switch or default in (None, "", []) else str(default),
        required=bool(found.required),
        is_option=is_option,
    )
