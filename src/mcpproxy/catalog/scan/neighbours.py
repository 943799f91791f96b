"""Whose name is this already? The tools of all other servers, found by name, by look and by sound."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Final, NamedTuple

from mcpproxy.catalog.scan.disguise import folded
from mcpproxy.catalog.tool import Tool

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAKS: Final = re.compile(r"[\s_.\-/]+")
_LOOKS: Final = str.maketrans("01345789$@|!", "oleastbgsall")
_DIGRAPHS: Final = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_VOWELS: Final = frozenset("aeiouy")
_WORDS: Final = re.compile(r"\w+")
_MAX_WORDS: Final = 400


class Neighbour(NamedTuple):
    """One tool of another server."""

    server: str
    name: str
    words: frozenset[str]


class Neighbours:
    """Every server's tools by their names; kept in step as servers list and leave, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_server: dict[str, dict[str, Neighbour]] = {}
        self._by_key: dict[tuple[str, str], dict[tuple[str, str], Neighbour]] = {}

    def put(self, server: str, tools: Iterable[Tool]) -> None:
        """The server has these tools now."""
        kept = {tool.name: Neighbour(server, tool.name, words_of(tool.description)) for tool in tools}
        with self._lock:
            self._drop(server)
            self._by_server[server] = kept
            for neighbour in kept.values():
                for key in _keys(neighbour.name):
                    self._by_key.setdefault(key, {})[server, neighbour.name] = neighbour

    def drop(self, server: str) -> None:
        """The server is gone."""
        with self._lock:
            self._drop(server)

    def _drop(self, server: str) -> None:
        for name in self._by_server.pop(server, {}):
            for key in _keys(name):
                entries = self._by_key[key]
                del entries[server, name]
                if not entries:
                    del self._by_key[key]

    def names(self, server: str) -> frozenset[str]:
        """The tools of one server."""
        return frozenset(self._by_server.get(server, ()))

    def __contains__(self, server: str) -> bool:
        return server in self._by_server

    @property
    def is_empty(self) -> bool:
        """Whether there is nobody."""
        return not self._by_server

    def named(self, name: str, besides: str) -> list[Neighbour]:
        """Tools of other servers with this very name."""
        return self._found(("name", name), besides)

    def shaped(self, name: str, besides: str) -> list[Neighbour]:
        """Tools of other servers whose name differs by capitals and separators at most."""
        return self._found(("shape", shape_of(name)), besides)

    def looking(self, name: str, besides: str) -> list[Neighbour]:
        """Tools of other servers whose name looks the same to a hasty eye: `emai1` for `email`."""
        return self._found(("look", _look_of(name)), besides)

    def sounding(self, name: str, besides: str) -> list[Neighbour]:
        """Tools of other servers whose name has the same consonants: `send_emial` for `send_email`."""
        return self._found(("sound", _sound_of(name)), besides)

    def _found(self, key: tuple[str, str], besides: str) -> list[Neighbour]:
        with self._lock:
            return [found for found in self._by_key.get(key, {}).values() if found.server != besides]


NOBODY: Final = Neighbours()
"""For a scan of one definition on its own."""


def words_of(text: str) -> frozenset[str]:
    """The words of a description, to hold it against another."""
    return frozenset(_WORDS.findall(text[:4000].lower())[:_MAX_WORDS])


def shape_of(name: str) -> str:
    """A name without its style: `sendEmail`, `send-email` and `send_email` are one."""
    return _BREAKS.sub("_", _CAMEL.sub("_", name)).casefold()


def _look_of(name: str) -> str:
    look = shape_of(folded(name)).replace("_", "").translate(_LOOKS).casefold()
    for pair, letter in _DIGRAPHS:
        look = look.replace(pair, letter)
    return look.replace("i", "l")


def _sound_of(name: str) -> str:
    letters = [char for char in shape_of(name) if char not in _VOWELS and char != "_"]
    return "".join(char for place, char in enumerate(letters) if place == 0 or char != letters[place - 1])


def _keys(name: str) -> tuple[tuple[str, str], ...]:
    return ("name", name), ("shape", shape_of(name)), ("look", _look_of(name)), ("sound", _sound_of(name))
