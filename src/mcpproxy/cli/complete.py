"""What could come next on this command line? Answered with the standard library alone, since a person waits on a key.

Names of servers and tools come from the configuration file and the database. They are what servers call themselves, so
only names without meaning to a shell are offered: a completion is typed for the user, and must not run anything.
"""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False  # importing `typing` takes longer than everything else here
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

Offer = tuple[str, str]
"""A word, and what it means."""

FILES = ":files"
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,199}\Z")
_CHOICES = {
    "--output": ("table", "json", "yaml"),
    "-o": ("table", "json", "yaml"),
    "--log-level": ("debug", "info", "warning", "error"),
    "--type": (
        "tool_call",
        "internal_tool_call",
        "policy_decision",
        "server_change",
        "tool_change",
        "config_change",
        "system_start",
        "system_stop",
    ),
    "--status": ("success", "error", "blocked", "warning", "rejected", "interrupted"),
    "--intent-type": ("read", "write", "destructive"),
    "--sensitivity": ("public", "internal", "private", "unknown"),
    "--period": ("1h", "24h", "7d", "30d"),
    "--format": ("jsonl", "csv"),
    "--protocol": ("stdio", "http", "sse"),
    "--trust": ("first_use", "manual", "scan"),
    "--allow": ("read", "write", "destructive"),
    "--from": ("claude-desktop", "claude-code", "cursor", "vscode", "gemini", "mcpproxy"),
    "CLIENT": ("claude-code", "claude-desktop", "cursor", "vscode", "gemini", "codex"),
    "SHELL": ("bash", "zsh", "fish"),
}
_FILE_VALUES = ("FILE", "DIR", "PATH", "[FILE]", "JSON")
_SERVERS = ("--server",)
_TOOLS = ("--tool", "--tool-name")


def main(argv: list[str]) -> None:
    """`mcpproxy __complete SHELL …`: print one offer a line."""
    shell, words, kept = argv[0], argv[1:], 0
    if shell == "bash":
        words, kept = _split(words[0])
        words = words[1:]
    typed = words[-1] if words else ""
    offers = sorted({offer for offer in offers_for(words) if offer[0].startswith(typed) or offer[0] == FILES})
    lines = [_line(shell, word, text, kept) for word, text in offers]
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _line(shell: str, word: str, text: str, kept: int) -> str:
    """One offer as a shell reads it: bash has no place for a meaning, and replaces only the end of a word."""
    if shell == "bash":
        return word if word == FILES else word[kept:]
    return f"{word}\t{text}".rstrip("\t")


def _split(line: str) -> tuple[list[str], int]:
    """The words of a line as far as it was typed, the last one perhaps empty; quotes as a shell has them.

    And how much of the last word bash leaves as it is: behind a `:`, a `=` or a quote it begins another.
    """
    words: list[str] = []
    word = quote = ""
    kept = 0
    for char in line:
        if quote and char == quote:
            quote, kept = "", len(word)
        elif quote:
            word += char
        elif char in "\"'":
            quote, kept = char, len(word)
        elif char.isspace():
            words, word, kept = ([*words, word] if word else words), "", 0
        else:
            word += char
            kept = len(word) if char in ":=" else kept
    return [*words, word], kept


def offers_for(words: list[str]) -> Iterator[Offer]:
    """What could stand in the place of the last word."""
    from mcpproxy.cli.words import WORDS

    *before, typed = words or [""]
    place: dict[str, Any] = WORDS
    arguments: list[str] = []
    given = {"options": dict(WORDS["options"])}
    waiting = ""  # an option whose value comes next
    for word in before:
        if waiting:
            waiting = ""
        elif word == "--":
            return
        elif word.startswith("-"):
            taken = given["options"].get(word)
            waiting = word if taken is not None and taken[0] else ""
        elif word in place.get("commands", {}):
            place = place["commands"][word]
            given["options"].update(place["options"])
        else:
            arguments.append(word)
    look = _Look(before)
    if waiting:
        yield from _values(waiting, given["options"][waiting][0], look)
    elif typed.startswith("--") and "=" in typed:
        option, _, _ = typed.partition("=")
        value = given["options"].get(option, ("", ""))[0]
        for word, text in _values(option, value, look):
            yield (word if word == FILES else f"{option}={word}"), text
    elif typed.startswith("-"):
        yield from ((name, text) for name, (_, text) in given["options"].items())
    elif "commands" in place:
        yield from ((name, inner["help"]) for name, inner in place["commands"].items())
    else:
        yield from _arguments(place["arguments"], arguments, look)


def _values(option: str, value: str, look: _Look) -> Iterator[Offer]:
    if option in _CHOICES:
        yield from ((choice, "") for choice in _CHOICES[option])
    elif option in _SERVERS:
        yield from look.servers()
    elif option in _TOOLS:
        yield from look.tools()
    elif value in _FILE_VALUES:
        yield FILES, ""


def _arguments(wanted: list[str], given: list[str], look: _Look) -> Iterator[Offer]:
    kind = wanted[min(len(given), len(wanted) - 1)] if wanted else ""
    if kind in _CHOICES:
        yield from ((choice, "") for choice in _CHOICES[kind])
    elif kind == "SERVER:TOOL [KEY=VALUE]" and given:
        yield from look.parameters(given[0])
    elif kind.startswith("SERVER:TOOL"):
        yield from look.tools()
    elif kind == "NAME" and not given:
        yield from look.servers()
    elif kind in _FILE_VALUES:
        yield FILES, ""


class _Look:
    """Finds names in the configuration file and the database; where that fails, there are none."""

    def __init__(self, before: list[str]) -> None:
        home = os.environ.get("HOME", "")
        data = _option(before, "--data-dir") or os.environ.get("MCPPROXY_DATA") or f"{home}/.mcpproxy"
        config = _option(before, "--config") or os.environ.get("MCPPROXY_CONFIG")
        self._config = _expanded(config or f"{home}/.mcpproxy/mcp_config.json", home)
        self._database = f"{_expanded(data, home)}/mcpproxy.db"

    def servers(self) -> Iterator[Offer]:
        """The configured servers."""
        import json

        try:
            with open(self._config, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes as long as all of this
                block = json.load(file).get("mcpServers", [])
        except (OSError, ValueError, AttributeError):
            return
        names = (
            list(block) if isinstance(block, dict) else [item.get("name") for item in block if isinstance(item, dict)]
        )
        yield from ((name, "") for name in names if isinstance(name, str) and _SAFE.match(name))

    def tools(self) -> Iterator[Offer]:
        """The tools of the last lists."""
        for server, definition in self._definitions():
            name = str(definition.get("name"))
            if _SAFE.match(server) and _SAFE.match(name):
                yield f"{server}:{name}", _plain(definition.get("description"))

    def parameters(self, tool: str) -> Iterator[Offer]:
        """What a tool takes."""
        for server, definition in self._definitions():
            if f"{server}:{definition.get('name')}" == tool:
                schema = definition.get("inputSchema")
                properties = schema.get("properties") if isinstance(schema, dict) else None
                for name, about in properties.items() if isinstance(properties, dict) else ():
                    if _SAFE.match(name):
                        yield f"{name}=", _plain(about.get("description") if isinstance(about, dict) else None)

    def _definitions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        import json
        import sqlite3

        if not os.path.exists(self._database):  # noqa: PTH110 - as above
            return
        try:
            database = sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=0.2)
            rows = database.execute("SELECT server, listing FROM tool_lists").fetchall()
            database.close()
            for server, listing in rows:
                for text in json.loads(listing)["definitions"]:
                    definition = json.loads(text)
                    if isinstance(definition, dict):
                        yield server, definition
        except (sqlite3.Error, ValueError, KeyError, TypeError):
            return


def _option(words: list[str], name: str) -> str | None:
    for place, word in enumerate(words):
        if word == name and place + 1 < len(words):
            return words[place + 1]
        if word.startswith(f"{name}="):
            return word[len(name) + 1 :]
    return None


def _expanded(path: str, home: str) -> str:
    return f"{home}/{path[2:]}" if path.startswith("~/") else path


def _plain(text: object) -> str:
    """The beginning of a description, without anything that a terminal obeys."""
    if not isinstance(text, str):
        return ""
    line = " ".join(text.split()).partition(". ")[0][:80]
    return "".join(char for char in line if char.isprintable())
