"""What changed between two definitions? Plain data, the dangerous part first, and a rendering for people."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Literal

from msgspec import Struct

from mcpproxy.catalog.pins import is_deep
from mcpproxy.catalog.shown import escaped

MAX_DIFFERENCES: Final = 200
MAX_WORDS: Final = 600
_VALUE_LIMIT: Final = 300
_TEXT_LIMIT: Final = 20_000

_WORDING: Final = frozenset({"description", "title", "$comment", "instructions"})
_HINTS: Final = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
_WORD: Final = re.compile(r"\S+\s*|\s+")

Kind = Literal["added", "removed", "changed", "wording"]
Operation = Literal["same", "added", "removed"]


class Words(Struct, frozen=True):
    """A run of words in a text that was reworded."""

    operation: Operation
    text: str


class Difference(Struct, frozen=True):
    """One thing that is not as it was. Every text in it is escaped and safe to print."""

    path: str
    kind: Kind
    before: str | None
    after: str | None
    loud: bool = False
    """Whether it changes what the tool may do or take, rather than how it speaks."""
    words: tuple[Words, ...] = ()


class _Number(Struct, frozen=True):
    """A number as it is spelled: not equal to a text that looks like it."""

    text: str


_Object = dict[tuple[str, int], Any]
"""Keys with how many times they stood there before, so that every one of several equal keys is seen."""


def diff(before: bytes, after: bytes) -> tuple[Difference, ...]:
    """Every difference between two definitions: flipped hints first, then what else is loud, then the rest."""
    found: list[Difference] = []
    for difference in _compare("", "", _read(before), _read(after)):
        found.append(difference)
        if len(found) == MAX_DIFFERENCES:
            found.append(Difference("", "changed", None, "and more differences than can be shown", loud=True))
            break
    return tuple(sorted(found, key=lambda one: (not _is_hint(one.path), not one.loud)))


def is_rewording(differences: tuple[Difference, ...]) -> bool:
    """Whether nothing but descriptions and titles changed."""
    return bool(differences) and all(difference.kind == "wording" for difference in differences)


def render(differences: tuple[Difference, ...]) -> str:
    """The differences as lines of text: `!!` before what is loud, `[-gone-]` and `{+new+}` within texts."""
    return "\n".join(_line(difference) for difference in differences)


def _line(one: Difference) -> str:
    mark = "!!" if one.loud else "  "
    match one.kind:
        case "added":
            return f"{mark} + {one.path}: {one.after}"
        case "removed":
            return f"{mark} - {one.path}: {one.before}"
        case "changed":
            return f"{mark} ~ {one.path}: {one.before} -> {one.after}"
        case "wording":
            return f"{mark} ~ {one.path}: {''.join(_marked(words) for words in one.words)}"


def _marked(words: Words) -> str:
    match words.operation:
        case "added":
            return f"{{+{words.text}+}}"
        case "removed":
            return f"[-{words.text}-]"
        case "same":
            return words.text


def _read(definition: bytes) -> Any:
    if is_deep(definition):
        return definition.decode(errors="backslashreplace")
    try:
        return json.loads(
            definition, object_pairs_hook=_every_key, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
    except ValueError:
        return definition.decode(errors="backslashreplace")


def _every_key(pairs: list[tuple[str, Any]]) -> _Object:
    times: Counter[str] = Counter()
    found: _Object = {}
    for key, value in pairs:
        found[key, times[key]] = value
        times[key] += 1
    return found


def _named(key: tuple[str, int]) -> str:
    name, time = key
    return escaped(name, 60) + (f" (again, {time + 1})" if time else "")


def _compare(path: str, key: str, before: Any, after: Any) -> Iterator[Difference]:
    """The differences between two values; `key` is the bare key under which they stand."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _compare_objects(path, key, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(path, before, after)
    elif isinstance(before, str) and isinstance(after, str) and key in _WORDING:
        texts = escaped(before, _TEXT_LIMIT), escaped(after, _TEXT_LIMIT)
        yield Difference(path, "wording", *texts, words=_reworded(before, after))
    else:
        yield Difference(path, "changed", _value(before), _value(after), _is_loud(path))


def _compare_objects(path: str, key: str, before: _Object, after: _Object) -> Iterator[Difference]:
    for inner in [*before, *(new for new in after if new not in before)]:
        place = f"{path}.{_named(inner)}" if path else _named(inner)
        if inner not in after:
            yield Difference(place, "removed", _value(before[inner]), None, _is_loud(place))
        elif inner not in before:
            new_parameter = key in ("properties", "patternProperties")
            yield Difference(place, "added", None, _value(after[inner]), _is_loud(place) or new_parameter)
        else:
            yield from _compare(place, inner[0], before[inner], after[inner])


def _compare_lists(path: str, before: list[Any], after: list[Any]) -> Iterator[Difference]:
    for number in range(max(len(before), len(after))):
        place = f"{path}[{number}]"
        if number >= len(after):
            yield Difference(place, "removed", _value(before[number]), None)
        elif number >= len(before):
            yield Difference(place, "added", None, _value(after[number]))
        else:
            yield from _compare(place, "", before[number], after[number])


def _is_hint(path: str) -> bool:
    return path == "annotations" or (path.startswith("annotations.") and path.rpartition(".")[2] in _HINTS)


def _is_loud(path: str) -> bool:
    """Hints and whole schemas: a person must see these."""
    return _is_hint(path) or path in ("inputSchema", "outputSchema")


def _value(value: Any) -> str:
    return escaped(_plain(value), _VALUE_LIMIT)


def _plain(value: Any) -> str:
    """Compact JSON with numbers as they were spelled."""
    match value:
        case _Number():
            return value.text
        case dict():
            return "{" + ",".join(f"{_plain(key[0])}:{_plain(value[key])}" for key in value) + "}"
        case list():
            return "[" + ",".join(_plain(item) for item in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _reworded(before: str, after: str) -> tuple[Words, ...]:
    old, new = _WORD.findall(before[:_TEXT_LIMIT]), _WORD.findall(after[:_TEXT_LIMIT])
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle = _changed_words(old[start : len(old) - end], new[start : len(new) - end])
    runs = [("same", old[:start]), *middle, ("same", old[len(old) - end :])]
    return tuple(Words(operation, escaped("".join(words))) for operation, words in runs if words)


def _changed_words(old: list[str], new: list[str]) -> Iterator[tuple[Operation, list[str]]]:
    if len(old) > MAX_WORDS or len(new) > MAX_WORDS:  # finding the best match takes the product of both lengths
        yield "removed", old
        yield "added", new
        return
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "same", old[a:b]
        else:
            yield "removed", old[a:b]
            yield "added", new[c:d]
