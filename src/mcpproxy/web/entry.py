"""How does a form become a server's entry, and an entry a form? Texts on one side, the file's values on the other."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcpproxy.web.forms import Form

_OF_A_COMMAND: Final = ("command", "args", "env", "working_dir")
_OF_A_URL: Final = ("url", "headers", "oauth", "protocol")
_FIELD_OF: Final = {"command": "command_line", "args": "command_line", "body": "name"}


class BadField(Exception):
    """A field of the form that cannot be read."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def command_line(config: Mapping[str, Any]) -> str:
    """The command and its arguments as one would type them."""
    return shlex.join([config["command"], *config["args"]]) if config.get("command") else ""


def texts_of(config: Mapping[str, Any]) -> dict[str, str]:
    """The fields of the form for an entry, secrets hidden."""
    oauth = config.get("oauth") or {}
    return {
        "name": config["name"],
        "kind": "url" if config.get("url") else "command",
        "command_line": command_line(config),
        "env": "\n".join(f"{name}={value}" for name, value in config["env"].items()),
        "working_dir": config.get("working_dir") or "",
        "url": config.get("url") or "",
        "headers": "\n".join(f"{name}: {value}" for name, value in config["headers"].items()),
        "protocol": config.get("protocol") or "",
        "trust": config["trust"],
        "call_tool_timeout": config.get("call_tool_timeout") or "",
        "enabled_tools": "\n".join(config.get("enabled_tools") or ()),
        "disabled_tools": "\n".join(config["disabled_tools"]),
        "oauth_client_id": oauth.get("client_id") or "",
        "oauth_client_secret": oauth.get("client_secret") or "",
        "oauth_scopes": " ".join(oauth.get("scopes") or ()),
    }


EMPTY: Final = texts_of({"name": "", "env": {}, "headers": {}, "trust": "first_use", "disabled_tools": ()})


def entry_of(given: Form) -> dict[str, Any]:
    """The entry that a form means; None for what it leaves empty. Raises BadField."""
    entry: dict[str, Any] = {
        "trust": given.get("trust") or None,
        "call_tool_timeout": given.get("call_tool_timeout") or None,
        "enabled_tools": given.lines("enabled_tools") or None,
        "disabled_tools": given.lines("disabled_tools") or None,
        **dict.fromkeys((*_OF_A_COMMAND, *_OF_A_URL)),
    }
    if given.get("kind") == "url":
        return entry | {
            "url": given.get("url") or None,
            "headers": _pairs(given, "headers", ":", "Name: value"),
            "protocol": given.get("protocol") or None,
            "oauth": _oauth(given),
        }
    command, *arguments = _words(given.raw("command_line"))
    return entry | {
        "command": command,
        "args": arguments,
        "env": _pairs(given, "env", "=", "NAME=value"),
        "working_dir": given.get("working_dir") or None,
    }


def without_gaps(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with only what it says."""
    rest = {key: without_gaps(value) if isinstance(value, Mapping) else value for key, value in entry.items()}
    return {key: value for key, value in rest.items() if value not in (None, {}, [])}


def changes(entry: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be sent to get from one entry to the other: blocks are merged there, so what goes is named."""
    patch = dict(entry)
    for block in ("env", "headers"):
        if patch[block] is not None:
            patch[block] = dict.fromkeys(before.get(block) or ()) | patch[block]
    if patch["oauth"] is not None and not before.get("oauth"):
        patch["oauth"] = without_gaps(patch["oauth"]) or None
    return patch


def field_of(path: str) -> str:
    """The field of the form that a problem with an entry belongs to."""
    head = path.partition("[")[0]
    return _FIELD_OF.get(head, head.replace("oauth.", "oauth_"))


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise BadField("command_line", f"it cannot be read as a command line: {str(error).lower()}") from None
    if not words:
        raise BadField("command_line", "give the command that starts the server")
    return words


def _pairs(given: Form, field: str, mark: str, example: str) -> dict[str, str] | None:
    pairs: dict[str, str] = {}
    for number, line in enumerate(given.lines(field), 1):
        name, found, value = line.partition(mark)
        if not found or not name.strip():
            raise BadField(field, f"line {number}: write {example}")
        pairs[name.strip()] = value.strip()
    return pairs or None


def _oauth(given: Form) -> dict[str, Any]:
    return {
        "client_id": given.get("oauth_client_id") or None,
        "client_secret": given.get("oauth_client_secret") or None,
        "scopes": given.get("oauth_scopes").split() or None,
    }
