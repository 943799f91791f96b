"""Which form fits a tool's input schema, and which arguments does a filled-in form mean?

Simple members get a field of their own kind; whatever is more than that gets a field for JSON. What is typed as a
number goes into the call as it was typed: nothing is rounded on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from mcpproxy.web.schema import required_names, resolved, type_of

if TYPE_CHECKING:
    from mcpproxy.web.forms import Form

PREFIX: Final = "arg."
"""Before the name of a member in the name of its field."""
MAX_FIELDS: Final = 60
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WHOLE: Final = re.compile(r"-?(?:0|[1-9]\d*)")
_LONG_TEXTS: Final = frozenset(
    "text body content message markdown html code sql prompt description comment data script query_text input".split()
)

Kind = Literal["text", "long", "number", "whole", "flag", "choice", "lines", "json"]


class Field(Struct, frozen=True, kw_only=True):
    """One field of the form."""

    name: str
    kind: Kind
    type: str
    required: bool
    description: str
    choices: tuple[tuple[str, str], ...] = ()
    """The JSON of each choice, and how it is shown."""
    placeholder: str = ""


class Unreadable(Exception):
    """What was typed means no arguments; which field, and what would."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in problems.items()))
        self.problems = problems


def fields_of(schema: Any) -> list[Field] | None:
    """The fields for a schema; None where it is too large or too odd for a form, and JSON has to do."""
    said, _ = resolved(schema, schema)
    properties = said.get("properties")
    if properties is None and said.get("type", "object") == "object" and not said.keys() & {"anyOf", "oneOf", "allOf"}:
        return []
    if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
        return None
    needed = required_names(said)
    made = [_field(str(name), child, schema, name in needed) for name, child in properties.items()]
    return sorted(made, key=lambda field: not field.required)


def _field(name: str, node: Any, root: Any, required: bool) -> Field:
    said, _ = resolved(node, root)
    kind, choices = _kind(name, said, root)
    return Field(
        name=name,
        kind=kind,
        type=type_of(node, root),
        required=required,
        description=str(said.get("description") or ""),
        choices=choices,
        placeholder=_placeholder(said),
    )


def _kind(name: str, said: Mapping[str, Any], root: Any) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    values = said.get("enum")
    if isinstance(values, list) and 0 < len(values) <= 200:
        return "choice", tuple((json.dumps(value), _shown(value)) for value in values)
    match said.get("type"):
        case "string":
            long = name.lower() in _LONG_TEXTS and not isinstance(said.get("maxLength"), int)
            return ("long" if long else "text"), ()
        case "number":
            return "number", ()
        case "integer":
            return "whole", ()
        case "boolean":
            return "flag", ()
        case "array":
            items, _ = resolved(said.get("items"), root)
            return ("lines" if items.get("type") == "string" and "enum" not in items else "json"), ()
        case _:
            return "json", ()


def _placeholder(said: Mapping[str, Any]) -> str:
    if "default" in said:
        return f"{_shown(said['default'])[:80]} where it is left out"
    examples = said.get("examples")
    return f"such as {_shown(examples[0])[:80]}" if isinstance(examples, list) and examples else ""


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def arguments_of(fields: list[Field], given: Form) -> bytes:
    """The arguments as JSON; what was left empty is left out. Raises Unreadable."""
    members: list[str] = []
    problems: dict[str, str] = {}
    for field in fields:
        text = given.raw(PREFIX + field.name)
        if not text.strip():
            continue
        try:
            members.append(f"{json.dumps(field.name)}: {_value(field, text)}")
        except ValueError as error:
            problems[field.name] = str(error)
    if problems:
        raise Unreadable(problems)
    return ("{" + ", ".join(members) + "}").encode()


def arguments_in(text: str) -> bytes:
    """Arguments that were typed as JSON, as they were typed. Raises Unreadable."""
    try:
        if not isinstance(json.loads(text or "{}"), dict):
            raise Unreadable({"json": "the arguments are an object: { … }"})
    except RecursionError:
        raise Unreadable({"json": "it is nested too deep"}) from None
    except ValueError as error:
        raise Unreadable({"json": f"this is not JSON: {error}"}) from None
    return (text or "{}").encode(errors="replace")


def _value(field: Field, text: str) -> str:
    stripped = text.strip()
    match field.kind:
        case "text" | "long":
            return json.dumps(text)
        case "number" if not _NUMBER.fullmatch(stripped):
            raise ValueError("give a number, such as 12 or 0.5")
        case "whole" if not _WHOLE.fullmatch(stripped):
            raise ValueError("give a whole number, such as 12")
        case "flag" if stripped not in ("true", "false"):
            raise ValueError("choose true or false")
        case "choice" if stripped not in (value for value, _ in field.choices):
            raise ValueError("choose one of the list")
        case "lines":
            return json.dumps([line.strip() for line in text.splitlines() if line.strip()])
        case "json":
            return _json(stripped)
    return stripped


def _json(text: str) -> str:
    try:
        json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f'this is not JSON: {error}. Texts stand in quotes: "…"') from None
    return text
