"""Does a text have the form its key asks for? One entry for each `form` that models.py names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

REFERENCE = re.compile(r"\$\{(env|keyring):([^}]+)\}")
_NAME = re.compile(r"[^:/\x00-\x1f\x7f-\x9f\u2028\u2029]{1,64}")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]*):(\d{1,5})")


class Form(Struct, frozen=True):
    """Which texts fit, and the words for them."""

    fits: Callable[[str], bool]
    allowed: str


def is_url(text: str) -> bool:
    """Whether it is an http or https address; one with a reference in it is judged when that is filled in."""
    if REFERENCE.search(text):
        return True
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not re.search(r"\s", text)


def _is_listen(text: str) -> bool:
    match = _LISTEN.fullmatch(text)
    return not text or (match is not None and int(match[2]) <= 65_535)


def _is_storage(text: str) -> bool:
    return text == "sqlite" or re.fullmatch(r"postgres(ql)?(\+psycopg)?://\S+", text) is not None


FORMS: Final = {
    "server_name": Form(
        lambda text: _NAME.fullmatch(text) is not None,
        "use 1 to 64 characters without ':', '/' or control characters",
    ),
    "listen": Form(_is_listen, 'use host:port such as "127.0.0.1:8080" or "[::1]:8080", or "" for stdio'),
    "storage": Form(_is_storage, 'use "sqlite" or "postgresql://user:password@host/database"'),
    "url": Form(is_url, 'use an address such as "https://example.com/mcp"'),
    "key": Form(
        lambda text: re.fullmatch(r"[\x21-\x7e]*", text) is not None,
        "use letters, digits and punctuation, no spaces; an HTTP header must carry it",
    ),
    "env_name": Form(lambda text: bool(text) and "=" not in text, "use a variable name, without '='"),
    "header_name": Form(
        lambda text: _TOKEN.fullmatch(text) is not None, "use an HTTP header name such as Authorization"
    ),
    "header_value": Form(
        lambda text: re.fullmatch(r"[^\x00-\x08\x0a-\x1f\x7f]*", text) is not None,
        "use one line without control characters",
    ),
}
