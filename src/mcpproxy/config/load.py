"""Which file is in force, and what does it say?"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, inspect, structs

from mcpproxy.config import document as documents
from mcpproxy.config.errors import ConfigAccessError, ConfigError, Problem, Report
from mcpproxy.config.files import locked, private_dir, write_private
from mcpproxy.config.forms import FORMS
from mcpproxy.config.models import Config
from mcpproxy.config.walk import BAD, walk

CONFIG_VARIABLE = "MCPPROXY_CONFIG"
DATA_VARIABLE = "MCPPROXY_DATA"
KEY_VARIABLE = "MCPPROXY_API_KEY"

_TYPE: Final = inspect.type_info(Config)
_DEFAULT: Final = b'{\n  "listen": "127.0.0.1:8080",\n  "api_key": "",\n  "mcpServers": []\n}\n'


class Loaded(Struct, frozen=True, kw_only=True):
    """A configuration that loads, and where it came from."""

    config: Config
    path: Path
    warnings: tuple[str, ...] = ()
    document: dict[str, Any]
    """The file's content as it was read, unknown keys included."""
    digest: str
    """Of the bytes that were read; two readings with the same digest are the same."""


def find_path(option: Path | None, env: Mapping[str, str] = os.environ) -> Path:
    """The file in force: --config, then $MCPPROXY_CONFIG, then the home directory. Never the current directory."""
    if option is not None:
        return option.absolute()
    named = env.get(CONFIG_VARIABLE)
    return _home_path(named, env).absolute() if named else _home(env) / ".mcpproxy" / "mcp_config.json"


def data_dir(option: Path | None, env: Mapping[str, str] = os.environ) -> Path:
    """The directory of database, keys and logs: --data-dir, then $MCPPROXY_DATA, then ~/.mcpproxy."""
    if option is not None:
        return option.absolute()
    named = env.get(DATA_VARIABLE)
    return _home_path(named, env).absolute() if named else _home(env) / ".mcpproxy"


def open_config(option: Path | None, env: Mapping[str, str] = os.environ) -> Loaded:
    """Load the file in force. The one in the home directory is made where it is missing; a named one must exist."""
    path = find_path(option, env)
    if option is None and not env.get(CONFIG_VARIABLE):
        create_default(path)
    return load(path, env)


def create_default(path: Path) -> None:
    """Write a file with the defaults, readable by this user alone, unless there is one."""
    if path.exists():
        return
    try:
        private_dir(path.parent)
        with locked(path):
            if not path.exists():
                write_private(path, _DEFAULT)
    except OSError as error:
        raise ConfigAccessError(path, "created", error) from error


def load(path: Path, env: Mapping[str, str] = os.environ) -> Loaded:
    """Read and check the file. $MCPPROXY_API_KEY stands in for its api_key."""
    data, warnings = read(path)
    try:
        return loaded(path, data, env, warnings)
    except ConfigError as error:
        raise error.at(path) from None


def loaded(path: Path, data: bytes, env: Mapping[str, str], warnings: tuple[str, ...] = ()) -> Loaded:
    """What these bytes say, as if they were the file's."""
    content = documents.decode(data).value
    config, more = parse(content)
    key = env.get(KEY_VARIABLE, "").strip()
    if key:
        config = structs.replace(config, api_key=_checked_key(key))
    digest = hashlib.sha256(data).hexdigest()
    return Loaded(config=config, path=path, warnings=(*warnings, *more), document=content, digest=digest)


def parse(document: bytes | dict[str, Any]) -> tuple[Config, tuple[str, ...]]:
    """The configuration and the warnings about it; ConfigError with every problem where it does not load."""
    content = documents.decode(document).value if isinstance(document, bytes) else documents.checked(document)
    report = Report()
    config = walk(_TYPE, content, "", report)
    if report.problems or config is BAD:
        raise ConfigError(report.problems, warnings=report.warnings)
    assert isinstance(config, Config)
    if config.listen.startswith(":"):
        config = structs.replace(config, listen=f"127.0.0.1{config.listen}")
    return config, tuple(report.warnings)


def read(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """The file's bytes, and a warning where others can read or change it."""
    try:
        with path.open("rb") as file:
            # One byte past the limit shows that it is passed.
            data = file.read(documents.MAX_BYTES + 1)
            mode = os.fstat(file.fileno()).st_mode
    except FileNotFoundError:
        raise ConfigError(
            [Problem(path="", what="there is no such file", allowed="write {} into it to begin")], path
        ) from None
    except IsADirectoryError:
        raise ConfigError([Problem(path="", what="it is a directory", allowed="name a file")], path) from None
    except OSError as error:
        raise ConfigAccessError(path, "read", error) from error
    return data, _exposure(path, mode)


def _exposure(path: Path, mode: int) -> tuple[str, ...]:
    if not stat.S_ISREG(mode) or not mode & 0o077:
        return ()
    able = "change" if mode & 0o022 else "read"
    return (f"{path} holds keys and commands, and other users can {able} it; run: chmod 600 {path}",)


def _checked_key(key: str) -> str:
    if not FORMS["key"].fits(key):
        raise ConfigError([Problem(path=f"${KEY_VARIABLE}", what="*** is not allowed", allowed=FORMS["key"].allowed)])
    return key


def _home(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def _home_path(text: str, env: Mapping[str, str]) -> Path:
    return _home(env) / text[2:] if text.startswith("~/") else Path(text)
