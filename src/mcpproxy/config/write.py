"""How is the operator's file changed without disturbing what stands in it?"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from mcpproxy.config import document as documents
from mcpproxy.config.dialects import DIALECTS, PLAIN
from mcpproxy.config.errors import ConfigAccessError, ConfigError, Problem
from mcpproxy.config.files import locked, write_private
from mcpproxy.config.load import Loaded, loaded, parse, read
from mcpproxy.config.models import Config, Server, plain

_COMMENTS = Problem(
    path="",
    what="it has comments, and writing it would lose them",
    allowed="make the change by hand, or remove the comments",
)


def update(path: Path, mutate: Callable[[dict[str, Any]], None], env: Mapping[str, str] = os.environ) -> Loaded:
    """Change the file under a lock, keeping unknown keys and their order. What would not load is not written.

    Waits for other writers and for the disk: call it in a thread where an event loop runs.
    """
    try:
        with locked(path):
            before, _ = read(path)
            after = _rewritten(before, mutate)
            result = loaded(path, after, env)
            if after != before:
                write_private(path, after)
            return result
    except ConfigError as error:
        raise error.at(path) from None
    except OSError as error:
        raise ConfigAccessError(path, "written", error) from error


def set_server(document: dict[str, Any], server: Server) -> None:
    """Add the server, or change the one of that name: only what differs is touched, spellings and unknown keys stay."""
    before = next((known for known in parse(document)[0].servers if known.name == server.name), None)
    servers = _servers(document)
    if before is not None:
        _change(_entry(servers, server.name), before, server)
    elif isinstance(servers, dict):
        servers[server.name] = _new_entry(server, keyed=True)
    else:
        servers.append(_new_entry(server, keyed=False))


def remove_server(document: dict[str, Any], name: str) -> bool:
    """Take the server out; says whether it was there."""
    servers = _servers(document)
    if isinstance(servers, dict):
        return servers.pop(name, None) is not None
    rest = [item for item in servers if not (isinstance(item, dict) and item.get("name") == name)]
    found = len(rest) < len(servers)
    servers[:] = rest
    return found


def merge_settings(document: dict[str, Any], patch: Mapping[str, Any]) -> None:
    """Lay a patch over the document: blocks are merged key by key, null removes a key."""
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(document.get(key), dict):
            merge_settings(document[key], value)
        else:
            document[key] = value


def with_api_key(current: Loaded, env: Mapping[str, str] = os.environ) -> Loaded:
    """The same configuration with an API key: the one it has, else a new one, saved where the file can be written."""
    if current.config.api_key:
        return current
    key = os.urandom(32).hex()

    def put(document: dict[str, Any]) -> None:
        # Another process may have been quicker; then its key holds for both.
        document["api_key"] = document.get("api_key") or key

    try:
        return update(current.path, put, env)
    except (ConfigError, ConfigAccessError) as error:
        warning = f"the new API key is not saved and holds until this process ends: {error}"
        config = structs.replace(current.config, api_key=key)
        return structs.replace(current, config=config, warnings=(*current.warnings, warning))


def _servers(document: dict[str, Any]) -> dict[str, Any] | list[Any]:
    """The block of servers under the name and in the shape that the file has, made where there is none."""
    for key in DIALECTS[Config].spellings("mcpServers"):
        servers = document.get(key)
        if isinstance(servers, dict | list):
            return servers
    made: list[Any] = []
    document["mcpServers"] = made
    return made


def _entry(servers: dict[str, Any] | list[Any], name: str) -> dict[str, Any]:
    found = servers[name] if isinstance(servers, dict) else next(item for item in servers if item["name"] == name)
    assert isinstance(found, dict)
    return found


def _new_entry(server: Server, *, keyed: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {} if keyed else {"name": server.name}
    _change(entry, Server(name=server.name), server)
    return entry


def _change(entry: dict[str, Any], before: Struct, after: Struct) -> None:
    """Write into the entry what differs between the two, in the words that the entry uses."""
    dialect = DIALECTS.get(type(after), PLAIN)
    for name in after.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        key, *others = [spelling for spelling in dialect.spellings(name) if spelling in entry] or [name]
        for other in others:
            del entry[other]
        if isinstance(old, Struct) and isinstance(new, Struct) and isinstance(entry.get(key), dict):
            _change(entry[key], old, new)
        elif new is None:
            entry.pop(key, None)
        else:
            entry[key] = not new if key in dialect.opposite else _without_defaults(new)


def _without_defaults(value: Any) -> Any:
    if not isinstance(value, Struct):
        return plain(value)
    entry: dict[str, Any] = {}
    _change(entry, type(value)(), value)
    return entry


def _rewritten(data: bytes, mutate: Callable[[dict[str, Any]], None]) -> bytes:
    """The bytes of the file after the change; the very same where it changes nothing."""
    before = documents.decode(data)
    after = copy.deepcopy(before.value)
    mutate(after)
    if after == before.value:
        return data
    if before.has_comments:
        raise ConfigError([_COMMENTS])
    return _encode(after, data)


def _encode(document: dict[str, Any], before: bytes) -> bytes:
    """The document as JSON, indented and with the line ends that the file had."""
    found = re.match(rb'\s*\{[ \t]*\r?\n([ \t]+)"', before.removeprefix(b"\xef\xbb\xbf"))
    indent = found[1].decode() if found else "  "
    text = json.dumps(document, indent=indent, ensure_ascii=False) + "\n"
    return (text.replace("\n", "\r\n") if b"\r\n" in before else text).encode()
