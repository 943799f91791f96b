"""Which server is meant? The words of `upstream add` as the entry that the configuration file would hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcpproxy.cli.errors import USAGE, Failure
from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse

if TYPE_CHECKING:
    from mcpproxy.config.models import Server

_HELP = "See: mcpproxy upstream add --help"


def from_words(name: str, words: Sequence[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """An entry from a URL, or from the words of a command."""
    if not words:
        raise Failure(USAGE, "what is the server? Give its URL, or -- and the command that starts it.", _HELP)
    if words[0].startswith(("http://", "https://")):
        if len(words) > 1:
            raise Failure(USAGE, f"{words[1]!r} is too much: a server with a URL takes no command.", _HELP)
        entry: dict[str, Any] = {"name": name, "url": words[0]}
    else:
        entry = {"name": name, "command": words[0], "args": list(words[1:])}
    return entry | {key: value for key, value in more.items() if value not in (None, {}, ())}


def from_json(name: str, text: str) -> dict[str, Any]:
    """An entry from JSON, as other programs' documentation shows it."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(USAGE, f"this is not valid JSON: {error}.", "See: mcpproxy upstream add-json --help") from None
    if not isinstance(entry, dict):
        raise Failure(USAGE, "the entry must be a JSON object.", "See: mcpproxy upstream add-json --help")
    return {"name": name, **{key: value for key, value in entry.items() if key != "name"}}


def checked(entry: dict[str, Any]) -> tuple[Server, tuple[str, ...]]:
    """The entry, held against the rules of the configuration file, and the remarks on it."""
    try:
        config, warnings = parse({"mcpServers": [entry]})
    except ConfigError as error:
        problems = "; ".join(str(problem) for problem in error.problems).replace("mcpServers[0]", "").lstrip(".")
        raise Failure(USAGE, f"the server cannot be added: {problems}.", _HELP) from None
    return config.servers[0], tuple(warning.replace("mcpServers[0].", "") for warning in warnings)


def variables(flag: str, given: Sequence[str] | None) -> dict[str, str]:
    """`KEY=VALUE` words; a lone `KEY` is looked up in the environment when the server starts."""
    found: dict[str, str] = {}
    for word in given or ():
        key, equals, value = word.partition("=")
        if not key:
            raise Failure(USAGE, f"{flag}: {word!r} is not KEY=VALUE.", _HELP)
        found[key] = value if equals else f"${{env:{key}}}"
    return found


def headers(given: Sequence[str] | None) -> dict[str, str]:
    """`Name: value` words."""
    found: dict[str, str] = {}
    for word in given or ():
        name, colon, value = word.partition(":")
        if not colon:
            raise Failure(USAGE, f"--header: write it as 'Name: value', not {word.partition('=')[0]!r}.", _HELP)
        found[name.strip()] = value.strip()
    return found
