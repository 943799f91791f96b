"""What did the user say to every command? Options that may stand before or behind the command's name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct

Output = Literal["table", "json", "yaml"]
OUTPUTS: Final[tuple[Output, ...]] = get_args(Output)
LEVELS: Final = ("debug", "info", "warning", "error")
_VALUED: Final = {
    "--config": "config",
    "--data-dir": "data_dir",
    "-o": "output",
    "--output": "output",
    "--log-level": "log_level",
}
COMMON: Final = (
    ("--config FILE", "The configuration file. Default: $MCPPROXY_CONFIG, then ~/.mcpproxy/mcp_config.json."),
    ("--data-dir DIR", "Where the database, keys and logs are. Default: $MCPPROXY_DATA, then ~/.mcpproxy."),
    ("-o, --output table|json|yaml", "How to print the answer. Default: table."),
    ("--json", "The same as -o json."),
    ("--log-level debug|info|warning|error", "What to log on stderr."),
)
"""The same, for help and manual; they are accepted before and after the command."""


class UsageError(Exception):
    """The command line cannot be understood."""

    def __init__(self, message: str, *, as_json: bool) -> None:
        super().__init__(message)
        self.as_json = as_json


class Options(Struct, frozen=True, kw_only=True):
    """The options that every command takes."""

    config: Path | None = None
    data_dir: Path | None = None
    output: Output = "table"
    log_level: str | None = None


def split(argv: Sequence[str]) -> tuple[Options, list[str]]:
    """Take the common options out, wherever they stand before a `--`; the rest is the command's own."""
    found: dict[str, str] = {}
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            rest += [word, *words]
            break
        name, has_value, value = _parted(word)
        if word == "--json":
            found["output"] = "json"
        elif name in _VALUED:
            if not has_value:
                value = next(words, "")
                if not value:
                    raise UsageError(f"{name} needs a value", as_json=found.get("output") == "json")
            found[_VALUED[name]] = value
        else:
            rest.append(word)
    return _checked(found), rest


def _parted(word: str) -> tuple[str, bool, str]:
    if word.startswith("-o") and len(word) > 2:  # -ojson
        return "-o", True, word[2:].removeprefix("=")
    name, equals, value = word.partition("=")
    return name, bool(equals), value


def _checked(found: dict[str, str]) -> Options:
    output = found.get("output", "table")
    if output not in OUTPUTS:
        raise UsageError(f"-o {output!r} is not known: use {', '.join(OUTPUTS)}", as_json=False)
    level = found.get("log_level")
    if level is not None and level not in LEVELS:
        raise UsageError(f"--log-level {level!r} is not known: use {', '.join(LEVELS)}", as_json=output == "json")
    return Options(
        config=Path(found["config"]).expanduser() if "config" in found else None,
        data_dir=Path(found["data_dir"]).expanduser() if "data_dir" in found else None,
        output=output,
        log_level=level,
    )
