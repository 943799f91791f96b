"""How are secrets kept out of everything that is stored or shown?"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

from msgspec import Struct, inspect

from mcpproxy.config import sniff
from mcpproxy.config.errors import HIDDEN
from mcpproxy.config.models import Config, Server, plain
from mcpproxy.config.walk import bare, marks

_SHORTEST = 6
"""Masking shorter values would tear holes into every log and protect nothing that can be guessed anyway."""
_SHORTEST_LINE = 16
_ANY = "surrogateescape"  # environment variables may hold any bytes

_CONFIG: Final = inspect.type_info(Config)
_SERVER: Final = inspect.type_info(Server)


class _Secrets(Struct, frozen=True):
    texts: tuple[str, ...] = ()
    data: tuple[bytes, ...] = ()


class Masker:
    """Replaces every secret it has learned with `***`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._secrets = _Secrets()
        self._learning = threading.Lock()

    def learn(self, source: str, values: Iterable[str]) -> None:
        """Take these as the secrets of a source, such as `server:github`, in place of those it had."""
        new = frozenset(form for value in values for form in _forms(value))
        with self._learning:
            current, _ = self._sources.get(source, (frozenset(), frozenset()))
            if new != current:
                # What was replaced may still be on its way into a log, so it stays one turn longer; what it had
                # before that goes, so that tokens refreshed for months do not pile up.
                self._sources[source] = (new, current)
                self._secrets = _ordered(part for parts in self._sources.values() for part in parts)

    # One `in` per secret is 5 to 15 times faster than one regular expression for all of them, up to some hundreds.

    def mask(self, text: str) -> str:
        """The text without any secret learned so far."""
        for secret in self._secrets.texts:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def mask_bytes(self, data: bytes) -> bytes:
        """UTF-8 or JSON bytes without any secret learned so far."""
        for secret in self._secrets.data:
            if secret in data:
                data = data.replace(secret, HIDDEN.encode())
        return data


def _ordered(parts: Iterable[frozenset[str]]) -> _Secrets:
    # The longest first, so that a secret within a secret leaves no rest.
    texts = tuple(sorted(frozenset().union(*parts), key=lambda text: (-len(text), text)))
    return _Secrets(texts=texts, data=tuple(text.encode(errors=_ANY) for text in texts))


def secrets_of(value: Config | Server) -> frozenset[str]:
    """Every secret that stands in a configuration or in one server of it."""
    kind = _CONFIG if isinstance(value, Config) else _SERVER
    return frozenset(text for pieces in _all_pieces(kind, value) for text, secret in pieces if secret)


def masked(value: Config | Server) -> dict[str, Any]:
    """The configuration, or one server of it, as it may be shown: plain JSON values, secrets hidden."""
    shown = _masked(_CONFIG if isinstance(value, Config) else _SERVER, value)
    assert isinstance(shown, dict)
    return shown


def unmask(edited: Any, original: Any, was_shown: Any) -> Any:
    """Undo the masking where a shown document comes back unchanged, so that `***` never overwrites a secret."""
    if isinstance(edited, dict) and isinstance(original, dict) and isinstance(was_shown, dict):
        return {key: unmask(item, original.get(key), was_shown.get(key)) for key, item in edited.items()}
    if isinstance(edited, list) and isinstance(original, list | tuple) and isinstance(was_shown, list):
        spare: list[Any] = [None] * len(edited)
        pairs = zip(edited, [*original, *spare], [*was_shown, *spare], strict=False)
        return [unmask(item, before, shown) for item, before, shown in pairs]
    return original if isinstance(edited, str) and HIDDEN in edited and edited == was_shown else edited


def _masked(kind: inspect.Type, value: Any) -> Any:
    match bare(kind):
        case _ if value is None:
            return None
        case inspect.StructType() as struct:
            return {item.encode_name: _masked(item.type, getattr(value, item.name)) for item in struct.fields}
        case inspect.DictType() | inspect.VarTupleType() | inspect.StrType():
            return _masked_texts(kind, value)
        case _:
            return plain(value)


def _masked_texts(kind: inspect.Type, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sniff.joined(_pieces(_secret_kind(kind), key, item)) for key, item in value.items()}
    if isinstance(value, str):
        return sniff.joined(_pieces(_secret_kind(kind), "", value))
    if _secret_kind(kind) == "args":
        return [sniff.joined(pieces) for pieces in sniff.arg_pieces(value)]
    item = bare(kind)
    assert isinstance(item, inspect.VarTupleType)
    return [_masked(item.item_type, each) for each in value]


def _all_pieces(kind: inspect.Type, value: Any) -> Iterator[list[sniff.Piece]]:
    match bare(kind):
        case inspect.StructType() as struct if value is not None:
            for item in struct.fields:
                yield from _all_pieces(item.type, getattr(value, item.name))
        case inspect.DictType():
            for key, item in value.items():
                yield _pieces(_secret_kind(kind), key, item)
                yield _pieces("url", "", item) if "://" in item else []
        case inspect.VarTupleType() as items if isinstance(bare(items.item_type), inspect.StructType):
            for each in value:
                yield from _all_pieces(items.item_type, each)
        case inspect.VarTupleType() if _secret_kind(kind) == "args":
            yield from sniff.arg_pieces(value)
        case inspect.StrType() if value:
            yield _pieces(_secret_kind(kind), "", value)


def _secret_kind(kind: inspect.Type) -> str:
    """What models.py noted about the texts in this type."""
    match bare(kind):
        case inspect.DictType(value_type=inner) | inspect.VarTupleType(item_type=inner):
            return str(marks(inner).get("secret", ""))
        case _:
            return str(marks(kind).get("secret", ""))


def _pieces(secret: str, name: str, text: str) -> list[sniff.Piece]:
    match secret:
        case "whole":
            return sniff.whole_pieces(text)
        case "env":
            return sniff.env_pieces(name, text)
        case "header":
            return sniff.header_pieces(name, text)
        case "url":
            return sniff.url_pieces(text)
        case "args":
            return sniff.line_pieces(text)
        case _:
            return [(text, False)]


def _forms(value: str) -> Iterator[str]:
    """The value and the ways it may be written: decoded, quoted, escaped, or line by line."""
    for text in {value, unquote(value), value.strip("'\"")}:
        for form in (
            text,
            quote(text, safe="", errors=_ANY),
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
        ):
            if len(form) >= _SHORTEST and form.strip() and not sniff.is_public(form):
                yield form
    if "\n" in value:
        yield from (line for line in value.splitlines() if len(line) >= _SHORTEST_LINE and "-----" not in line)
