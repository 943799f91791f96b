"""Which part of a text is a credential? Pure rules, shared by what is shown and by what is masked in logs.

A text is cut into pieces, each secret or not, that together are the text again. So the same rule yields the
masked text and the secret values in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from mcpproxy.config.errors import HIDDEN
from mcpproxy.config.forms import REFERENCE

Piece = tuple[str, bool]
"""A part of a text, and whether it is secret."""

_SECRET_WORDS: Final = frozenset(
    "key apikey token secret password passwd passphrase passcode pass pwd pat auth authorization cred creds credential "
    "credentials cookie jwt bearer dsn sig signature otp pin sas session".split()
)
_SECRET_ENDINGS: Final = ("password", "passwd", "token", "secret", "apikey")
_PUBLIC_ENV: Final = frozenset(
    "path home user logname shell term lang language tz pwd tmpdir temp tmp editor port host hostname debug verbose "
    "node_env node_options pythonpath pythonunbuffered pythonioencoding virtual_env log_level loglevel rust_log "
    "no_color force_color ci env environment region aws_region aws_default_region display http_timeout timeout".split()
)
_PUBLIC_HEADERS: Final = frozenset(
    "accept accept-encoding accept-language cache-control connection content-type host mcp-protocol-version origin "
    "referer user-agent x-request-id".split()
)
_PUBLIC_VALUES: Final = frozenset(
    "true false yes no on off none null auto default enabled disabled debug info warn warning error critical trace "
    "verbose production development staging test testing local localhost stdio http https sse utf-8 "
    # Guessed by anyone; hiding them would only tear holes into logs.
    "password secret admin root postgres mysql github example changeme".split()
)
_PREFIXES: Final = re.compile(
    r"(?:gh[opsur]_|github_pat_|glpat-|sk-|rk_live_|sk_live_|xox[abeprs]-|AKIA|ASIA|AIza|eyJ|hf_|npm_|pypi-|shpat_|"
    r"lin_api_|figd_|ntn_|dop_v1_|SG\.|ya29\.)[\w.-]{8,}"
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RUN: Final = re.compile(r"[A-Za-z0-9_+=]{20,}")
_PATH: Final = re.compile(r"(?:~?/|\.{1,2}/|[A-Za-z]:[\\/])")
_URL: Final = re.compile(r"([A-Za-z][\w+.-]*://)([^/?#]*@)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
# A database password may hold a raw slash; no path of theirs holds an "@".
_DATABASE_URL: Final = re.compile(r"((?!https?:)[A-Za-z][\w+.-]*://)(.*@)([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"(-{0,2}[A-Za-z_][\w.-]*=)(.*)", re.DOTALL)
_HEADER: Final = re.compile(r"([\w-]+)(:\s*)(.+)", re.DOTALL)
_SCHEME: Final = re.compile(r"((?:Bearer|Basic|Token|ApiKey)\s+)(.*)", re.DOTALL | re.IGNORECASE)
_JSON_PAIR: Final = re.compile(r'"([^"]+)"\s*:\s*"((?:\\.|[^"\\])*)"', re.DOTALL)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_secret_name(name: str) -> bool:
    """Whether a variable, flag, header or query key is named like a credential."""
    words = [word.lower() for word in _WORD.findall(name)]
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)


def looks_secret(text: str) -> bool:
    """Whether a value has the looks of a token, whatever it is called."""
    if _PREFIXES.search(text) or _UUID.search(text):
        return True
    runs = _RUN.findall(text)
    return any(sum(map(str.isdigit, run)) >= 3 and sum(map(str.isalpha, run)) >= 3 for run in runs)


def is_public(text: str) -> bool:
    """Whether a value says nothing worth hiding: a word, a small number, a path, an address without credentials."""
    plain = text.strip().lower()
    if plain in _PUBLIC_VALUES or re.fullmatch(r"[\d.,:]{0,7}", plain):
        return True
    if "://" in text:
        return not any(secret for _, secret in url_pieces(text))
    return _PATH.match(text) is not None and not looks_secret(text)


def env_is_secret(name: str, value: str) -> bool:
    """Whether an environment variable is to be hidden: all are, but for well-known names and plain values."""
    if name.lower() in _PUBLIC_ENV:
        return False
    return is_secret_name(name) or not is_public(value)


def whole_pieces(text: str) -> list[Piece]:
    """All of it is secret, unless it only refers to a secret that is kept elsewhere."""
    return [(text, bool(text) and bool(REFERENCE.sub("", text).strip()))]


def env_pieces(name: str, value: str) -> list[Piece]:
    """The value of one environment variable."""
    return whole_pieces(value) if env_is_secret(name, value) else [(value, False)]


def header_pieces(name: str, value: str) -> list[Piece]:
    """The value of one header; its scheme, such as Bearer, is no secret."""
    if name.lower() in _PUBLIC_HEADERS:
        return [(value, False)]
    scheme = _SCHEME.fullmatch(value)
    return [(scheme[1], False), *whole_pieces(scheme[2])] if scheme else whole_pieces(value)


def url_pieces(url: str) -> list[Piece]:
    """Password, tokens in the path and credentials in the query."""
    found = _DATABASE_URL.fullmatch(url) or _URL.fullmatch(url)
    if not found:
        return [(url, looks_secret(url))]
    start, user, host, path, query, fragment = (part or "" for part in found.groups())
    return [
        (start, False),
        *_user_pieces(user),
        (host, False),
        *(piece for part, slash in _between(path, "/") for piece in ((part, looks_secret(part)), (slash, False))),
        *_query_pieces(query),
        *_query_pieces(fragment),
    ]


def arg_pieces(args: Sequence[str]) -> Iterator[list[Piece]]:
    """The pieces of each argument; what a flag such as --token takes is secret."""
    before = ""
    for arg in args:
        yield _arg(before, arg)
        before = arg


def line_pieces(line: str) -> list[Piece]:
    """The pieces of a command line in one text."""
    words = re.split(r"(\s+)", line)
    gaps = [*words[1::2], ""]
    return [
        piece for pieces, gap in zip(arg_pieces(words[::2]), gaps, strict=True) for piece in (*pieces, (gap, False))
    ]


def joined(pieces: Sequence[Piece]) -> str:
    """The text with its secret pieces hidden."""
    return "".join(HIDDEN if secret else text for text, secret in pieces)


def mask_url(url: str) -> str:
    """The address with its credentials hidden."""
    return joined(url_pieces(url))


def _arg(before: str, arg: str) -> list[Piece]:
    flag = before if before.startswith("-") and "=" not in before else ""
    if (flag and is_secret_name(flag) and not arg.startswith("-")) or before.lower() in {"bearer", "basic"}:
        return whole_pieces(arg)
    header, pair = _HEADER.fullmatch(arg), _ASSIGNMENT.fullmatch(arg)
    if header and (flag in {"-H", "--header"} or is_secret_name(header[1])) and not header[3].startswith("//"):
        return [(header[1] + header[2], False), *header_pieces(header[1], header[3])]
    if pair and flag in {"-e", "--env"}:
        return [(pair[1], False), *env_pieces(pair[1][:-1], pair[2])]
    if pair:
        return [(pair[1], False), *(whole_pieces(pair[2]) if is_secret_name(pair[1]) else _arg("", pair[2]))]
    if arg.lstrip().startswith(("{", "[")):
        return _json_pieces(arg)
    if re.search(r"\s", arg):
        return line_pieces(arg)
    if "://" in arg:
        return url_pieces(arg)
    return [(arg, "/" not in arg and looks_secret(arg))]


def _user_pieces(user: str) -> list[Piece]:
    name, colon, password = user[:-1].partition(":")
    if not user:
        return []
    return (
        [(name + colon, False), *whole_pieces(password), ("@", False)] if colon else [*whole_pieces(name), ("@", False)]
    )


def _query_pieces(query: str) -> list[Piece]:
    pieces: list[Piece] = [(query[:1], False)]
    for part, between in _between(query[1:], "&"):
        name, equals, value = part.partition("=")
        secret = is_secret_name(name) or looks_secret(value)
        pieces += [(name + equals, False), *(whole_pieces(value) if secret else [(value, False)]), (between, False)]
    return pieces


def _between(text: str, mark: str) -> Iterator[tuple[str, str]]:
    *head, last = text.split(mark)
    yield from ((part, mark) for part in head)
    yield last, ""


def _json_pieces(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    end = 0
    for found in _JSON_PAIR.finditer(text):
        if is_secret_name(found[1]) or looks_secret(found[2]):
            pieces += [(text[end : found.start(2)], False), *whole_pieces(found[2])]
            end = found.end(2)
    return [*pieces, (text[end:], False)]
