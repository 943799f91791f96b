"""Where do secrets come from? `${env:NAME}` and `${keyring:NAME}` in a server's fields, filled in when it connects."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, structs

from mcpproxy.config.errors import entry, member
from mcpproxy.config.forms import REFERENCE, is_url
from mcpproxy.config.mask import Masker, secrets_of
from mcpproxy.config.models import OAuth, Server
from mcpproxy.config.sniff import env_is_secret

KEYRING_SERVICE = "mcpproxy"
_EXPANDED = ("command", "args", "env", "working_dir", "url", "headers", "oauth")


class SecretMissing(Exception):
    """A reference in a server's field could not be filled in."""

    def __init__(self, server: str, field: str, reference: str, why: str) -> None:
        self.server, self.field, self.reference = server, field, reference
        super().__init__(f"server {server!r}: {field} needs {reference}, {why}")


class _Source(Struct):
    env: Mapping[str, str]
    keyring: Callable[[str], str | None]
    server: str
    used: set[str]


def from_keyring(name: str) -> str | None:
    """The password that the system's keyring holds for mcpproxy under this name."""
    import keyring  # slow to import, and needed by few

    return keyring.get_password(KEYRING_SERVICE, name)


def expand(
    server: Server,
    masker: Masker,
    env: Mapping[str, str] = os.environ,
    keyring: Callable[[str], str | None] = from_keyring,
) -> Server:
    """The server with every reference filled in, its secrets known to the masker.

    A keyring may ask the user and so may block: call this in a thread.
    """
    source = _Source(env=env, keyring=keyring, server=server.name, used=set())
    changed = {name: _expanded(getattr(server, name), name, source) for name in _EXPANDED}
    full = structs.replace(server, **changed)
    if full.url and not is_url(full.url):
        raise SecretMissing(server.name, "url", str(server.url), "and with it filled in is no http or https address")
    masker.learn(f"server:{server.name}", source.used | secrets_of(full))
    return full


def _expanded(value: Any, field: str, source: _Source) -> Any:
    match value:
        case str():
            return REFERENCE.sub(lambda found: _resolved(found, field, source), value)
        case tuple():
            return tuple(_expanded(item, entry(field, index), source) for index, item in enumerate(value))
        case dict():
            return {key: _expanded(item, entry(field, key), source) for key, item in value.items()}
        case OAuth():
            names = [name for name in value.__struct_fields__ if getattr(value, name)]
            return structs.replace(
                value, **{name: _expanded(getattr(value, name), member(field, name), source) for name in names}
            )
        case _:
            return value


def _resolved(found: re.Match[str], field: str, source: _Source) -> str:
    kind, name = found.groups()
    value = source.env.get(name) if kind == "env" else _stored(found[0], name, field, source)
    if value is None:
        why = (
            "and that environment variable is not set; set it before mcpproxy starts"
            if kind == "env"
            else f"and the keyring holds no such entry; store it with: keyring set {KEYRING_SERVICE} {name}"
        )
        raise SecretMissing(source.server, field, found[0], why)
    if kind == "keyring" or env_is_secret(name, value):
        source.used.add(value)
    return value


def _stored(reference: str, name: str, field: str, source: _Source) -> str | None:
    try:
        return source.keyring(name)
    except Exception as error:  # backends raise what they like: D-Bus errors, their own, RuntimeError
        why = f"and the keyring cannot be asked: {type(error).__name__}: {error}"
        raise SecretMissing(source.server, field, reference, why) from error
