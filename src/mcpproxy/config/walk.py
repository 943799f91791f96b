"""Does a document fit the models? One walk for every type, so that a new key needs no code here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import inspect

from mcpproxy.config.dialects import DIALECTS, PLAIN
from mcpproxy.config.errors import Report, choices, entry, member, nearest, shown
from mcpproxy.config.forms import FORMS
from mcpproxy.config.models import Duration
from mcpproxy.config.rules import RULES
from mcpproxy.config.sniff import mask_url

BAD: Final = object()
"""Stands for a value that was refused; the report says why."""

_DURATION = "use text such as 500ms, 3s, 2m, 1h or 30d, or a number of seconds above 0"


def walk(kind: inspect.Type, raw: object, path: str, report: Report) -> Any:
    """The value that `raw` means as this type, or BAD, with every problem on the report."""
    match bare(kind):
        case inspect.StructType() as struct:
            return _struct(struct, raw, path, report)
        case inspect.VarTupleType() as items:
            return _items(items, raw, path, report)
        case inspect.DictType() as table:
            return _table(table, raw, path, report)
        case scalar:
            return _scalar(scalar, raw, path, report, marks(kind))


def marks(kind: inspect.Type) -> dict[str, Any]:
    """What models.py noted on this type, such as its form and whether it is secret."""
    match kind:
        case inspect.Metadata():
            return {**marks(kind.type), **(kind.extra or {})}
        case inspect.UnionType():
            return {key: value for part in kind.types for key, value in marks(part).items()}
        case _:
            return {}


def bare(kind: inspect.Type) -> inspect.Type:
    """The type itself, without its marks and without `| None`."""
    match kind:
        case inspect.Metadata():
            return bare(kind.type)
        case inspect.UnionType():
            (only,) = (part for part in kind.types if not isinstance(part, inspect.NoneType))
            return bare(only)
        case _:
            return kind


def _scalar(kind: inspect.Type, raw: object, path: str, report: Report, noted: dict[str, Any]) -> Any:
    allowed = _mismatch(kind, raw, noted)
    if allowed is None:
        return Duration.read(raw) if isinstance(kind, inspect.CustomType) else raw
    report.problem(path, f"{_visible(raw, noted.get('secret'))} is not allowed", allowed, _guess(kind, raw))
    return BAD


def _visible(raw: object, secret: str | None) -> str:
    is_url = secret == "url" and isinstance(raw, str)  # noqa: S105 - a mark, no password
    return shown(mask_url(str(raw))) if is_url else shown(raw, secret=secret is not None)


def _mismatch(kind: inspect.Type, raw: object, noted: dict[str, Any]) -> str | None:
    """What is allowed, where `raw` is not; else None."""
    match kind:
        case inspect.BoolType():
            return None if isinstance(raw, bool) else "use true or false"
        case inspect.IntType():
            fits = isinstance(raw, int) and not isinstance(raw, bool) and _within(kind, raw)
            return None if fits else f"use a whole number{_range(kind)}"
        case inspect.LiteralType(values=values):
            return None if isinstance(raw, str) and raw in values else f"use {choices([str(v) for v in values])}"
        case inspect.CustomType():
            return None if Duration.read(raw) is not None else _DURATION
        case _:
            return _text_mismatch(raw, noted.get("form"))


def _text_mismatch(raw: object, form: str | None) -> str | None:
    if form is not None:
        return None if isinstance(raw, str) and "\0" not in raw and FORMS[form].fits(raw) else FORMS[form].allowed
    if not isinstance(raw, str):
        return "use text in quotes"
    return "leave out the NUL character" if "\0" in raw else None


def _within(kind: inspect.IntType, raw: int) -> bool:
    return (kind.ge is None or raw >= kind.ge) and raw <= (kind.le if kind.le is not None else 2**53)


def _range(kind: inspect.IntType) -> str:
    return f" from {kind.ge} to {kind.le}" if kind.le is not None else f" of {kind.ge} or more"


def _guess(kind: inspect.Type, raw: object) -> str | None:
    if isinstance(kind, inspect.LiteralType) and isinstance(raw, str):
        return nearest(raw, [str(value) for value in kind.values])
    return None


def _struct(kind: inspect.StructType, raw: object, path: str, report: Report, **given: Any) -> Any:
    if not isinstance(raw, dict):
        report.problem(path, f"{shown(raw, secret=True)} is not an object", "use { … }")
        return BAD
    dialect = DIALECTS.get(kind.cls, PLAIN)
    fields = {item.encode_name: item for item in kind.fields}
    values: dict[str, Any] = dict(given)
    for key, item in raw.items():
        name, value = dialect.ours(key), dialect.value(key, item)
        if name not in fields:
            _unknown(key, path, report, tuple(fields), dialect.notes)
        elif not _absent(fields[name].type, value):
            found = walk(fields[name].type, value, member(path, key), report)
            values[fields[name].name] = _agreed(values.get(fields[name].name, found), found, member(path, key), report)
    for item in kind.fields:
        if item.required and item.name not in values:
            report.problem(member(path, item.encode_name), "it is missing", _required(item.type))
            values[item.name] = BAD
    return _build(kind, values, path, report)


def _absent(kind: inspect.Type, value: object) -> bool:
    # Programs write null, and the Go mcpproxy "", for what was left open.
    optional = isinstance(kind, inspect.UnionType)
    return value is None or (optional and value == "")


def _agreed(first: Any, second: Any, path: str, report: Report) -> Any:
    if first == second:
        return second
    if BAD not in (first, second):
        report.problem(path, "it contradicts another key that says the same thing", "keep one of them")
    return BAD


def _unknown(key: str, path: str, report: Report, known: tuple[str, ...], notes: dict[str, str]) -> None:
    if key in notes:
        if notes[key]:
            report.warn(member(path, key), notes[key])
    elif not key.startswith(("_", "//")):  # how people write comments where there are none
        guess = nearest(key, known)
        advice = f"; did you mean {shown(guess)}?" if guess else ""
        report.warn(member(path, key), f"unknown key, ignored{advice}")


def _required(kind: inspect.Type) -> str:
    form = marks(kind).get("form")
    return FORMS[form].allowed if form else "give it"


def _build(kind: inspect.StructType, values: dict[str, Any], path: str, report: Report) -> Any:
    bad = {name for name, value in values.items() if value is BAD}
    sound = {name: value for name, value in values.items() if value is not BAD}
    for item in kind.fields:
        if item.required and item.name in bad:
            sound[item.name] = ""
    built = kind.cls(**sound)
    for needs, rule in RULES.get(kind.cls, ()):
        if not needs & bad:
            rule(built, path, report)
    return BAD if bad else built


def _items(kind: inspect.VarTupleType, raw: object, path: str, report: Report) -> Any:
    item = bare(kind.item_type)
    if isinstance(item, inspect.StructType):
        return _named_items(item, raw, path, report)
    if not isinstance(raw, list | tuple):
        report.problem(path, f"{shown(raw, secret=True)} is not a list", "use [ … ]")
        return BAD
    values = tuple(walk(kind.item_type, each, entry(path, i), report) for i, each in enumerate(raw))
    return BAD if BAD in values else values


def _named_items(kind: inspect.StructType, raw: object, path: str, report: Report) -> Any:
    """A list of things with a name, or an object keyed by it."""
    if isinstance(raw, dict):
        given = [(key, each) for key, each in raw.items() if each is not None]
        found = tuple(_keyed(kind, key, each, entry(path, key), report) for key, each in given)
    elif isinstance(raw, list | tuple):
        found = tuple(_struct(kind, each, entry(path, index), report) for index, each in enumerate(raw))
        _names_differ(raw, path, report)
    else:
        report.problem(path, f"{shown(raw, secret=True)} is not allowed", "use a list, or an object keyed by name")
        return BAD
    return BAD if BAD in found else found


def _names_differ(raw: Sequence[Any], path: str, report: Report) -> None:
    first: dict[str, str] = {}
    for index, each in enumerate(raw):
        name = each.get("name") if isinstance(each, dict) else None
        place = entry(path, index)
        if isinstance(name, str) and first.setdefault(name, place) != place:
            report.problem(member(place, "name"), f"{shown(name)} is the name of {first[name]} too", "rename one")


def _keyed(kind: inspect.StructType, key: str, raw: object, path: str, report: Report) -> Any:
    name = walk(kind.fields[0].type, key, path, report)
    if not isinstance(raw, dict):
        return _struct(kind, raw, path, report)
    if raw.get("name") not in (None, key):
        report.warn(member(path, "name"), f"is ignored; the server is called {shown(key)}")
    rest = {each: value for each, value in raw.items() if each != "name"}
    return _struct(kind, rest, path, report, name=name)


def _table(kind: inspect.DictType, raw: object, path: str, report: Report) -> Any:
    if not isinstance(raw, dict):
        report.problem(path, f"{shown(raw, secret=True)} is not an object", "use { … }")
        return BAD
    values: dict[str, Any] = {}
    for key, item in raw.items():
        if item is not None:
            place = entry(path, key.partition("=")[0])  # who writes "TOKEN=abc" as the key gives the secret away
            name = walk(kind.key_type, key, place, report)
            value = walk(kind.value_type, item, place, report)
            values[key] = BAD if name is BAD else value
    return BAD if BAD in values.values() else values
