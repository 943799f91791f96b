"""How is another program's file changed without disturbing what else stands in it?"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from mcpproxy.cli.connect.clients import NAME, Client, Entry
from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.config.document import decode
from mcpproxy.config.errors import ConfigError

_WHERE: Final = frozenset(
    ("type", "url", "httpUrl", "serverUrl", "command", "args", "env", "cwd", "headers", "http_headers", "transport")
)
"""The keys that say where a server is: those are ours; the rest of an entry is the user's."""
_TABLE: Final = re.compile(r"^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(#.*)?$")


def entry_in(client: Client, text: str) -> Entry | None:
    """The proxy's entry in a client's file, where it has one."""
    found = _block(client, _read(client, text)).get(NAME)
    return found if isinstance(found, dict) else None


def is_connected(client: Client, text: str, entry: Entry) -> bool:
    """Whether the file has this entry; what the user added to it does not matter."""
    found = entry_in(client, text) or {}
    return {key: value for key, value in found.items() if key in entry} == entry


def with_entry(client: Client, text: str, entry: Entry | None) -> str:
    """The file with this entry for the proxy, or without any; everything else as it was."""
    if entry is not None and is_connected(client, text, entry):
        return text
    before = _read(client, text)
    block = dict(_block(client, before))
    found = block.pop(NAME, None)
    if entry is not None:
        kept = found.items() if isinstance(found, dict) else ()
        block[NAME] = {key: value for key, value in kept if key not in _WHERE} | entry
    changed = _toml_with(client, text, block.get(NAME)) if client.is_toml else _json_with(client, text, block)
    if not _means(client, changed, {**before, client.block: block}):
        raise _by_hand(client, "its form is unusual", entry)
    return changed


def _means(client: Client, text: str, document: dict[str, Any]) -> bool:
    """Whether a changed text reads as what was meant."""
    try:
        after = _read(client, text)
    except Failure:
        return False
    return {**after, client.block: _block(client, after)} == document


def _block(client: Client, document: dict[str, Any]) -> dict[str, Any]:
    block = document.get(client.block, {})
    if not isinstance(block, dict):
        raise Failure(FAILED, f"{client.path()} cannot be changed: its {client.block} is not an object.")
    return block


def _read(client: Client, text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        return tomllib.loads(text) if client.is_toml else decode(text.encode()).value
    except (ConfigError, tomllib.TOMLDecodeError) as error:
        problem = error.problems[0] if isinstance(error, ConfigError) else error
        raise Failure(FAILED, f"{client.path()} cannot be read: {problem}.", "Correct it first.") from None


def _json_with(client: Client, text: str, block: dict[str, Any]) -> str:
    text = text if text.strip() else "{}"
    document = decode(text.encode())
    if document.has_comments:
        raise _by_hand(client, "it has comments, which would be lost", block.get(NAME))
    found = re.match(r'\s*\{[ \t]*\r?\n([ \t]+)"', text)
    content = {**document.value, client.block: block}
    return json.dumps(content, indent=found[1] if found else "  ", ensure_ascii=False) + "\n"


def _toml_with(client: Client, text: str, entry: Entry | None) -> str:
    """The text with the proxy's table cut out and, at its end, the new one. Without one its inner tables go too."""
    ours = f"{client.block}.{NAME}"
    kept: list[str] = []
    cutting = False
    for line in text.splitlines(keepends=True):
        table = _TABLE.match(line)
        if table is not None:
            name = re.sub(r"[\s\"']", "", table[1])
            cutting = name == ours or (entry is None and name.startswith(f"{ours}."))
        if not cutting:
            kept.append(line)
    before = "".join(kept).rstrip("\n")
    if entry is None:
        return before + "\n" if before else ""
    inner = [key for key, value in entry.items() if isinstance(value, dict) and key not in _WHERE]
    written = _toml_table(ours, {key: value for key, value in entry.items() if key not in inner})
    return f"{before}\n\n{written}" if before else written


def _toml_table(name: str, entry: Entry) -> str:
    lines = [f"[{name}]"]
    for key, value in entry.items():
        if isinstance(value, dict):
            inner = ", ".join(f"{inner_key} = {json.dumps(inner)}" for inner_key, inner in value.items())
            lines.append(f"{key} = {{ {inner} }}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")  # texts and lists of texts look the same in both
    return "\n".join(lines) + "\n"


def _by_hand(client: Client, why: str, entry: Entry | None) -> Failure:
    if entry is None:
        return Failure(FAILED, f"{client.path()} is not changed: {why}.", f"Take {NAME!r} out by hand.")
    shown = _toml_table(f"{client.block}.{NAME}", entry) if client.is_toml else json.dumps({NAME: entry})
    return Failure(FAILED, f"{client.path()} is not changed: {why}.", f"Add this under {client.block} by hand: {shown}")


# Files.


def read_text(path: Path) -> str | None:
    """What a file holds; None where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise Failure(FAILED, f"{path} cannot be read: it is not UTF-8 text.", "Correct it first.") from None


def backup_of(path: Path) -> Path:
    """Where the file as it was before is kept; empty where there was none."""
    return path.with_name(f"{path.name}.before-mcpproxy")


def replace(path: Path, text: str) -> None:
    """Replace a file in one step, with the mode that it had; a link stays a link."""
    from mcpproxy.config.files import write_private

    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    write_private(path, text.encode())
    path.resolve().chmod(mode)
