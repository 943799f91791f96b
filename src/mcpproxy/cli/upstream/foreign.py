"""Which servers do other programs know? Read from their files, put into our words; nothing is run to find out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from mcpproxy.cli import places
from mcpproxy.cli.errors import USAGE, Failure
from mcpproxy.config.document import decode
from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.models import Server
from mcpproxy.upstream.server import server_identity

SOURCES: Final[dict[str, tuple[str, Callable[[], Path]]]] = {
    "claude-desktop": ("Claude Desktop", places.claude_desktop),
    "claude-code": ("Claude Code", places.claude_code),
    "cursor": ("Cursor", places.cursor),
    "vscode": ("VS Code", places.vscode),
    "gemini": ("Gemini CLI", places.gemini),
    "mcpproxy": ("mcpproxy", places.go_mcpproxy),
}
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_ASKED: Final = re.compile(r"\$\{input:")
_BAD_NAME: Final = re.compile(r"[:/\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Found(Struct, frozen=True, kw_only=True):
    """One server in another program's file."""

    source: str
    path: Path
    name: str
    server: Server | None = None
    entry: dict[str, Any] = {}
    verdict: str = "new"
    """`new`, or why it is not added."""


def find(wanted: str | None, file: Path | None, ours: Path, known: Iterable[Server]) -> list[Found]:
    """Every server in the files of other programs, each with what would become of it."""
    taken = {server.name: server_identity(server) for server in known}
    found: list[Found] = []
    for source, path in _files(wanted, file, ours):
        for name, entry in _entries(source, path):
            judged = _judged(source, path, name, entry, taken)
            if judged.server is not None and judged.verdict == "new":
                taken[judged.server.name] = server_identity(judged.server)
            found.append(judged)
    return found


def _files(wanted: str | None, file: Path | None, ours: Path) -> Iterator[tuple[str, Path]]:
    if wanted is not None and wanted not in SOURCES:
        raise Failure(USAGE, f"--from: {wanted!r} is not known; give one of {', '.join(SOURCES)}.")
    if file is not None:
        yield str(file), file.expanduser()
        return
    for name, (title, place) in SOURCES.items():
        path = place()
        if wanted in (None, name) and path.is_file() and path.resolve() != ours.resolve():
            yield title, path


def _entries(source: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        document = decode(path.read_bytes()).value
    except OSError as error:
        raise Failure(USAGE, f"{path} cannot be read: {error.strerror}.") from None
    except ConfigError as error:
        raise Failure(USAGE, f"{error.at(path)}.") from None
    blocks = [document.get("mcpServers"), document.get("servers")]
    mcp = document.get("mcp")  # older settings of VS Code
    blocks.append(mcp.get("servers") if isinstance(mcp, Mapping) else None)
    projects = document.get("projects")  # Claude Code keeps the servers of each project here
    for project in projects.values() if isinstance(projects, Mapping) else ():
        blocks.append(project.get("mcpServers") if isinstance(project, Mapping) else None)
    for block in blocks:
        for name, entry in _named(block):
            yield name, _in_our_words(entry, source)


def _named(block: Any) -> list[tuple[str, dict[str, Any]]]:
    """The servers of a block that is a list of objects with names, or an object keyed by name."""
    pairs: Iterable[tuple[Any, Any]] = block.items() if isinstance(block, dict) else ()
    if isinstance(block, list):
        pairs = [(item.get("name"), item) for item in block if isinstance(item, dict)]
    return [(str(name), entry) for name, entry in pairs if isinstance(entry, dict)]


def _in_our_words(entry: dict[str, Any], source: str) -> dict[str, Any]:
    ours = {key: value for key, value in _referring(entry).items() if not (key == "trust" and isinstance(value, bool))}
    if source == "Gemini CLI" and "url" in ours and "httpUrl" not in ours:
        ours.setdefault("type", "sse")  # its word for the older of the two HTTP transports
    return ours


def _referring(value: Any) -> Any:
    """The same with `$NAME` and `${NAME}` as `${env:NAME}`."""
    if isinstance(value, dict):
        return {key: _referring(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_referring(item) for item in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: f"${{env:{match[1] or match[3]}}}", value)
    return value


def _judged(source: str, path: Path, name: str, entry: dict[str, Any], taken: dict[str, str]) -> Found:
    def said(verdict: str, server: Server | None = None) -> Found:
        return Found(source=source, path=path, name=name, server=server, entry=entry, verdict=verdict)

    clean_name = _BAD_NAME.sub("-", name).strip()[:64] or "server"
    try:
        server = parse({"mcpServers": [{**entry, "name": clean_name}]})[0].servers[0]
    except ConfigError as error:
        return said(f"does not load: {str(error.problems[0]).removeprefix('mcpServers[0].')}")
    if _is_ourselves(server):
        return said("is mcpproxy itself", server)
    if server_identity(server) in taken.values():
        return said("is there already", server)
    if _ASKED.search(str(entry)):
        return said("asks for input; add it by hand with ${env:NAME} or ${keyring:NAME}", server)
    free = _free(clean_name, taken)
    entry = {**entry, "name": free}
    return Found(source=source, path=path, name=free, entry=entry, server=parse({"mcpServers": [entry]})[0].servers[0])


def _is_ourselves(server: Server) -> bool:
    words = [server.command or "", *server.args]
    return Path(words[0]).name == "mcpproxy" and "serve" in words


def _free(name: str, taken: Mapping[str, str]) -> str:
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name[:60]}-{number}"
    return free
