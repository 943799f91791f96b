"""Is the house itself in order? Configuration, files, disk, port and keyring."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.doctor.finding import Finding, broken, note, ok, warning

if TYPE_CHECKING:
    from mcpproxy.cli.session import Session

_PRIVATE: Final = ("mcp_config.json", "mcpproxy.db", "activity-signing.key", "vectors.db", "oauth", "logs", "writers")
_LITTLE: Final = 1_000_000_000
_TOO_LITTLE: Final = 50_000_000


def check_config(session: Session) -> Iterator[Finding]:
    """Does the file load, and is it for its owner only?"""
    from mcpproxy.config.errors import ConfigAccessError, ConfigError

    try:
        loaded = session.loaded
    except ConfigError as error:
        yield broken("config", str(error), "Correct the file; mcpproxy config validate says when it is right.")
        return
    except ConfigAccessError as error:
        yield broken("config", str(error))
        return
    path = loaded.path
    exposed = path.exists() and bool(path.stat().st_mode & 0o077)
    for remark in loaded.warnings:
        if "other users can" not in remark:
            yield warning("config", remark, f"See docs/configuration.md, and correct {path}.")
    if exposed:
        text = f"{path} holds keys and commands, and other users can read or change it"
        yield warning("config", text, f"Run: chmod 600 {path}", lambda: path.chmod(0o600))
    servers = looks.plural(len(loaded.config.servers), "server")
    yield ok("config", f"{path} loads: {servers}")


def check_data_dir(session: Session) -> Iterator[Finding]:
    """Is the data directory there, ours, and for nobody else?"""
    folder = session.data_dir
    if not folder.exists():
        yield note("data", f"{folder} is not there yet; mcpproxy serve makes it")
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        text = f"{folder} cannot be read and written by this user"
        yield broken("data", text, f"See whose it is: ls -ld {folder}; if yours: chmod 700 {folder}")
        return
    places = [folder, *(folder / name for name in _PRIVATE)]
    exposed = [place for place in places if place.exists() and _is_exposed(place)]
    for place in exposed:
        mode = 0o700 if place.is_dir() else 0o600
        text = f"other users can read {place}"
        yield warning("data", text, f"Run: chmod {mode:o} {place}", lambda place=place, mode=mode: place.chmod(mode))  # type: ignore[misc]
    if not exposed:
        yield ok("data", f"{folder} is readable by its owner alone")
    yield from _check_disk(folder)


def _is_exposed(place: Path) -> bool:
    found = place.lstat()
    return not stat.S_ISLNK(found.st_mode) and bool(found.st_mode & 0o077)


def _check_disk(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    text = f"{looks.size(free)} are free on the disk of {folder}"
    if free < _TOO_LITTLE:
        yield broken("disk", text, "Free some space: calls are refused where they cannot be recorded.")
    elif free < _LITTLE:
        yield warning("disk", text, "Free some space, or lower activity.max_size_mb.")
    else:
        yield ok("disk", text)


def check_daemon(session: Session) -> Iterator[Finding]:
    """Does the daemon run, and is it the one that this configuration means?"""
    import mcpproxy
    from mcpproxy.cli.screen import value_of

    daemon = session.daemon
    if daemon is None:
        yield from _check_port(session)
        return
    found: dict[str, Any] = value_of(daemon.get("/status"))
    if found["config"].get("error"):
        text = f"the daemon runs on what was loaded before: {found['config']['error']}"
        yield broken("daemon", text, "Correct the file; the daemon takes it up by itself.")
    if found.get("activity", {}).get("error"):
        text = f"the daemon cannot put anything on record, and calls are refused: {found['activity']['error']}"
        if session.config.activity.on_failure == "allow":
            text = f"the daemon loses records, {found['activity']['lost']} so far: {found['activity']['error']}"
        yield broken("log", text, "It goes on by itself once that is over.")
    if found["version"] != mcpproxy.__version__:
        text = f"the daemon is version {found['version']}, and this is {mcpproxy.__version__}"
        yield warning("daemon", text, "Start it again: stop mcpproxy serve, then start it.")
    if found["config"]["path"] != str(session.loaded.path):
        text = f"the daemon was started with {found['config']['path']}, not with {session.loaded.path}"
        yield warning("daemon", text, "Give both the same --config.")
    yield ok("daemon", f"it answers at {daemon.where}")


def _check_port(session: Session) -> Iterator[Finding]:
    from mcpproxy.listen import CannotListen, PortInUse, open_socket

    listen = session.config.listen
    if not listen:
        yield note("daemon", "none runs; listen is empty, so mcpproxy serves on stdio only")
        return
    try:
        open_socket(listen).close()
    except PortInUse:
        text = f"none runs, and another program has {listen}"
        yield broken("port", text, "Stop that program, or set another listen in the configuration.")
    except CannotListen as error:
        yield broken("port", f"none runs, and {error}", "Set another listen in the configuration.")
    else:
        yield note("daemon", f"none runs; {listen} is free", "Start it with: mcpproxy serve")


def check_keyring(session: Session) -> Iterator[Finding]:
    """Is every secret that the configuration refers to there?"""
    from mcpproxy.config.mask import Masker
    from mcpproxy.config.secrets import SecretMissing, expand

    referring = [server for server in session.config.servers if server.enabled and "${" in _texts(server)]
    for server in referring:
        try:
            expand(server, Masker())
        except SecretMissing as error:
            yield broken("secrets", str(error))
    backend = _keyring_name()
    if backend is None:
        text = "no keyring works here: logins are kept in private files instead"
        yield note("keyring", text, "${keyring:NAME} in the configuration will not work.")
    else:
        yield ok("keyring", f"{backend} can be used")


def _texts(server: Any) -> str:
    from mcpproxy.config.models import plain

    return str(plain(server))


def _keyring_name() -> str | None:
    try:
        import keyring
        from keyring.backends.fail import Keyring as Nothing

        backend = keyring.get_keyring()
    except Exception:  # backends raise what they like
        return None
    return None if isinstance(backend, Nothing) else str(backend.name)


def check_clock(newest: float | None) -> Iterator[Finding]:
    """Does the clock go forwards? What is on record is not in the future."""
    ahead = newest - time.time() if newest is not None else 0.0
    if ahead > 60:
        text = f"the newest record is {looks.duration(ahead * 1000)} in the future: the clock was set back"
        yield warning("clock", text, "Set the clock right, or records will not stand in order.")
    elif time.time() < 1_750_000_000:
        yield broken("clock", f"it says {time.strftime('%Y-%m-%d')}", "Set it right: logins and tokens depend on it.")
    else:
        yield ok("clock", "it agrees with what is on record")
